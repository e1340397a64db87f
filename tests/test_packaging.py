"""What holds for the two packages and the repository as a whole."""

import ast
import graphlib
import importlib
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ["bnp_kernels", "bnp_models"]


def package_directory(package):
    spec = importlib.util.find_spec(package)
    assert spec is not None, f"{package} is not installed"
    assert spec.submodule_search_locations, f"{package} is not a package"
    return Path(spec.submodule_search_locations[0])


def modules(package):
    """Names of a package and its modules, which are not imported; scripts left out."""
    directory = package_directory(package)
    files = (path.relative_to(directory.parent) for path in sorted(directory.rglob("*.py")))
    names = (file.parent if file.stem == "__init__" else file.with_suffix("") for file in files)
    return [".".join(name.parts) for name in names if name.name != "__main__"]


def run_fresh(code):
    """Run code in a new interpreter, without the working directory on its path."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_after_import(names):
    """Top-level modules that a new interpreter holds after importing `names`."""
    report = "import json, sys; print(json.dumps([name.split('.')[0] for name in sys.modules]))"
    return set(json.loads(run_fresh(f"import {', '.join(names)}\n{report}")))


def test_kernels_need_jax_only():
    others = {"arviz", "bnp_models", "matplotlib", "numpyro", "optax", "pandas", "sklearn", "tqdm"}
    others |= {"h5netcdf", "xarray"}
    loaded = loaded_after_import(modules("bnp_kernels"))
    assert "jax" in loaded  # the report works
    assert not loaded & others


def test_import_is_light():
    loaded = loaded_after_import(["bnp_models"])
    assert not loaded & {"arviz", "jinja2", "matplotlib", "pandas", "sklearn"}


@pytest.mark.slow
def test_import_leaves_the_jax_backend_to_the_user():
    names = [name for package in PACKAGES for name in modules(package)]
    # JAX refuses this setting once a backend has started
    run_fresh(f"import jax, {', '.join(names)}\njax.config.update('jax_num_cpu_devices', 3)")


def test_modules_list_their_names():
    found = map(importlib.import_module, (name for p in PACKAGES for name in modules(p)))
    wrong = {
        module.__name__: [
            name for name in getattr(module, "__all__", ["__all__"]) if not hasattr(module, name)
        ]
        for module in found
    }
    assert {name: missing for name, missing in wrong.items() if missing} == {}


# Rooms of the library from the bottom up: a module imports from its own room and from those below.
# Models and the registry are on top of what they are made of, baselines and estimators on top of
# `fit`. Besides, `base` and `data` import from one another, and methods of results that write text
# or a report import it when they are called.
ROOMS = [
    {"bnp_kernels"},
    {"base", "data"},
    {"models", "posterior"},
    {"scores", "plots"},
    {"registry", "results"},
    {"report"},
    {"run"},
    {"baselines", "estimators"},
    {"package"},  # the names that users type
    {"cli"},
    {"testing"},
]


def room_of(module):
    """The room that a module of either package belongs to."""
    first, _, rest = module.partition(".")
    if first == "bnp_kernels":
        return first
    room = rest.partition(".")[0]
    if room in ("", "__main__"):
        return "cli" if room else "package"
    return room


def imports_of(path, known):
    """Modules of both packages that a file imports anywhere: in functions and for types, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import, which this test does not follow"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in names if name in known} or {node.module}
    return found & known


@pytest.fixture(scope="module")
def imports():
    """What each module of both packages imports from them."""
    known = {name for package in PACKAGES for name in modules(package)}
    graph = {}
    for name in known:
        path = package_directory(name.partition(".")[0]).parent / name.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        graph[name] = imports_of(path, known) - {name}
    return graph


def against_the_order(graph):
    """Imports that go up, or sideways into another room of the same height."""
    height = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}
    return [
        f"{module} imports {other}"
        for module, others in sorted(graph.items())
        for other in sorted(others)
        if (here := room_of(module)) != (there := room_of(other))
        and height[there] >= height[here]
        and (here, there) not in {("base", "data"), ("results", "report")}
    ]


def test_imports_go_one_way(imports):
    assert against_the_order(imports) == []
    # the rule can fail, and imports inside functions are seen
    upwards = {"bnp_models.base.model": {"bnp_models.posterior.mixtures"}}
    assert against_the_order(upwards) == [
        "bnp_models.base.model imports bnp_models.posterior.mixtures"
    ]
    assert "bnp_models.scores.held_out" in imports["bnp_models.results.topic_fit"]


def test_no_modules_import_one_another(imports):
    imports = {  # methods of results import the report when they are called
        module: {x for x in others if (room_of(module), room_of(x)) != ("results", "report")}
        for module, others in imports.items()
    }
    tuple(graphlib.TopologicalSorter(imports).static_order())  # a CycleError names the circle
    circle = imports | {"bnp_kernels.random.bits": {"bnp_models.cli.command"}}
    with pytest.raises(graphlib.CycleError):
        tuple(graphlib.TopologicalSorter(circle).static_order())


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_typed(package):
    assert (package_directory(package) / "py.typed").is_file()


def test_the_registry_is_exported():
    import bnp_models

    assert set(bnp_models.MODELS) <= set(bnp_models.__all__)
    for name, model in bnp_models.MODELS.items():
        assert getattr(bnp_models, name) is model
        assert model.__name__ == name


def test_version_is_that_of_the_metadata():
    import bnp_models

    try:
        installed = importlib.metadata.version("bnp-models")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("bnp-models runs from its source tree, not installed")
    assert bnp_models.__version__ == installed, "install again: pip install -e ."


@pytest.fixture(scope="module")
def repository_files():
    """Files that are in git or would be after `git add --all`."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others"]
    try:
        listing = subprocess.run(
            [*command, "--exclude-standard"], cwd=REPOSITORY, capture_output=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = (REPOSITORY / name for name in listing.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


@pytest.fixture(scope="module")
def texts(repository_files):
    """Content of the files that are text, by path."""
    contents = {path: path.read_bytes() for path in repository_files}
    return {path: data.decode() for path, data in contents.items() if b"\0" not in data}


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?<![\w.~/-])/(?:home|root|Users|work|scratch)/\w",  # paths of one machine
        r"\bpypi\.|python[h]osted|index[-]url|find[-]links",  # package registries
        r"(?:https?|file)://[^\s\"']*(?:/simple\b|/packages/|/pool/|registry\.)",
    ],
)
def test_files_name_no_machine_and_no_registry(texts, pattern):
    found = [
        f"{path.relative_to(REPOSITORY)}: {match.group()}"
        for path, text in texts.items()
        for match in re.finditer(pattern, text)
    ]
    assert found == []


def test_files_end_with_one_newline(texts):
    unfinished = [path for path, text in texts.items() if text and not re.search(r"\S\n\Z", text)]
    assert unfinished == []


def test_files_are_small(repository_files):
    assert [path for path in repository_files if path.stat().st_size > 2**20] == []


def test_toml_files_parse(texts):
    for path, text in texts.items():
        if path.suffix == ".toml":
            tomllib.loads(text)


def test_notebooks_have_no_outputs(texts):
    cells = [
        cell
        for path, text in texts.items()
        if path.suffix == ".ipynb"
        for cell in json.loads(text)["cells"]
    ]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
