"use strict";
// Search boxes and menus of the long lists; links to a topic that is folded away.
(() => {
  const STEP = 25; // rows that are shown at first, and that the button adds

  document.documentElement.classList.add("js");

  function prepare(listing) {
    const body = listing.querySelector("tbody");
    const rows = Array.from(body.rows);
    const text = new Map(rows.map((row) => [
      row, Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase(),
    ]));
    const search = listing.querySelector("input");
    const menus = Array.from(listing.querySelectorAll("select"));
    const status = listing.querySelector(".status");
    const more = listing.querySelector(".more");
    const what = listing.dataset.what;
    let limit = STEP;

    // the weight of a value in a row, null if the row does not have it
    function weight(row, menu) {
      for (const part of (row.dataset[menu.dataset.filter] || "").split(" ")) {
        const [value, size] = part.split(":");
        if (value === menu.value) return Number(size || 0);
      }
      return null;
    }

    function show() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = menus.filter((menu) => menu.value !== "");
      const found = rows.filter((row) =>
        words.every((word) => text.get(row).includes(word)) &&
        chosen.every((menu) => weight(row, menu) !== null));
      if (chosen.length) { // the largest share first; equal ones stay in order
        const size = new Map(found.map((row) => [row, weight(row, chosen[0])]));
        found.sort((a, b) => size.get(b) - size.get(a));
      }
      const kept = new Set(found);
      body.append(...found, ...rows.filter((row) => !kept.has(row)));
      for (const row of rows) row.hidden = true;
      for (const row of found.slice(0, limit)) row.hidden = false;
      const shown = Math.min(limit, found.length);
      const all = found.length === rows.length;
      const matching = all ? `${what} of the list` : `${what} that match`;
      status.textContent = found.length === 0
        ? `None of the ${rows.length.toLocaleString("en")} ${what} of the list matches.`
        : `Showing ${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} ${matching}.`;
      more.hidden = shown === found.length;
    }

    function restart() {
      limit = STEP;
      show();
    }

    search.addEventListener("input", restart);
    for (const menu of menus) menu.addEventListener("change", restart);
    listing.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    more.addEventListener("click", () => {
      limit += STEP;
      show();
    });
    show();

    return {
      id: listing.id.replace(/-list$/, ""),
      choose(given) {
        search.value = given.get("search") || "";
        for (const menu of menus) menu.value = given.get(menu.dataset.filter) || "";
        restart();
        listing.scrollIntoView();
      },
    };
  }

  const lists = Array.from(document.querySelectorAll(".listing"), prepare);

  // "#documents&topic=3", "#search=law": what a list shows; "#topic-3": a topic
  function follow() {
    const hash = location.hash.slice(1);
    const [first] = hash.split("&");
    if (hash.includes("=")) {
      const list = first.includes("=") ? lists[0] : lists.find((one) => one.id === first);
      if (list) list.choose(new URLSearchParams(hash));
      return;
    }
    const target = hash && document.getElementById(hash);
    if (!target) return;
    for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) {
      box.open = true;
    }
    target.scrollIntoView();
  }

  addEventListener("hashchange", follow);
  follow();
})();
