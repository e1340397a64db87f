"use strict";
// Search boxes and menus of the long lists; links to a topic that is folded away.
(() => {
  const STEP = 25; // rows that are shown at first, and that the button adds

  document.documentElement.classList.add("js");

  const wordsOf = (text) => text.toLowerCase().split(/[^\p{L}\p{M}\p{N}_]+/u).filter(Boolean);

  // words of the label of each topic, and its first words
  const topics = new Map(Array.from(document.querySelectorAll("article.topic"), (card) => [
    card.id.replace("topic-", ""),
    wordsOf(`${card.querySelector("h3").lastChild.textContent} ${card.querySelector(".words").textContent}`),
  ]));

  // 2 if a word is the same, 1 if one begins so, 0 otherwise; and the place of that word
  function closeness(words, part) {
    const same = words.indexOf(part);
    if (same >= 0) return [2, same];
    const begins = words.findIndex((word) => word.startsWith(part));
    return begins >= 0 ? [1, begins] : [0, 0];
  }

  function prepare(listing) {
    const body = listing.querySelector("tbody");
    const rows = Array.from(body.rows);
    const text = new Map(rows.map((row) => [
      row, Array.from(row.cells, (cell) => cell.textContent).join(" ").toLowerCase(),
    ]));
    const words = new Map(rows.map((row) => [row, wordsOf(text.get(row))]));
    const name = new Map(rows.map((row) => [row, wordsOf((row.cells[0].querySelector("[dir]") || row.cells[0]).textContent)]));
    const search = listing.querySelector("input");
    const menus = Array.from(listing.querySelectorAll("select"));
    const status = listing.querySelector(".status");
    const more = listing.querySelector(".more");
    const what = listing.dataset.what;
    let limit = STEP;

    const pairs = (row, name) =>
      (row.dataset[name] || "").split(" ").filter(Boolean).map((part) => part.split(":"));

    // the weight of a value in a row, null if the row does not have it
    function weight(row, menu) {
      for (const [value, size] of pairs(row, menu.dataset.filter)) {
        if (value === menu.value) return Number(size || 0);
      }
      return null;
    }

    // How well a row answers to what was typed, null if it does not: first the name, then topics by
    // their shares, less where the word is not their first one, then the rest of the row. Words that
    // are the same come before words that begin so.
    function rank(row, parts) {
      let total = 0;
      for (const part of parts) {
        const best = [15 * closeness(name.get(row), part)[0], 2 * closeness(words.get(row), part)[0]];
        for (const [k, share] of pairs(row, "topic")) {
          const [found, place] = closeness(topics.get(k) || [], part);
          if (found) best.push(10 * found + Number(share) / (1 + place));
        }
        const most = Math.max(...best);
        if (!most && !text.get(row).includes(part)) return null;
        total += most;
      }
      return total;
    }

    function show() {
      const parts = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const chosen = menus.filter((menu) => menu.value !== "");
      const ranks = new Map(rows.map((row) => [row, rank(row, parts)]));
      const found = rows.filter((row) =>
        ranks.get(row) !== null && chosen.every((menu) => weight(row, menu) !== null));
      const size = new Map(found.map((row) => [row, chosen.length ? weight(row, chosen[0]) : 0]));
      // the best answer first, then the largest share; equal ones stay in order
      found.sort((a, b) => ranks.get(b) - ranks.get(a) || size.get(b) - size.get(a));
      const kept = new Set(found);
      body.append(...found, ...rows.filter((row) => !kept.has(row)));
      for (const row of rows) row.hidden = true;
      for (const row of found.slice(0, limit)) row.hidden = false;
      const shown = Math.min(limit, found.length);
      const all = found.length === rows.length;
      const matching = all ? `${what} of the list` : `${what} that match`;
      const order = parts.length && found.length > 1 ? " The best matches come first." : "";
      status.textContent = found.length === 0
        ? `None of the ${rows.length.toLocaleString("en")} ${what} of the list matches.`
        : `Showing ${shown.toLocaleString("en")} of ${found.length.toLocaleString("en")} ${matching}.${order}`;
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
