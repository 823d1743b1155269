// The theme, the filter of the overview, and a night's figures beneath its chart. Everything else is there without it.
"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.remove("no-js");

  // A browser may keep nothing for a file.
  const kept = (change) => { try { return change(localStorage); } catch { return null; } };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const nameTheme = () => { byId("theme").textContent = isDark() ? "Light theme" : "Dark theme"; };
  const wanted = kept((store) => store.getItem("tfcompare-theme"));
  if (wanted === "dark" || wanted === "light") root.dataset.theme = wanted;
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    kept((store) => store.setItem("tfcompare-theme", root.dataset.theme));
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);
  nameTheme();

  const form = byId("filter");
  if (form) {
    const rows = all(".cells tbody tr").map((row) => [row, row.cells[0].textContent.toLowerCase()]);
    const filter = () => {
      const words = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
      const open = byId("filter-open").checked;
      let count = 0;
      for (const [row, text] of rows) {
        row.hidden = (open && !("open" in row.dataset)) || !words.every((word) => text.includes(word));
        if (!row.hidden) count += 1;
      }
      byId("filter-count").textContent = count === rows.length ? `${count} rows` : `${count} of ${rows.length} rows shown`;
    };
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  const order = byId("sort-by");
  if (order) {
    for (const row of all(".cells tbody tr")) row.dataset.place = row.sectionRowIndex;
    const figure = (row) => (order.value === "name" ? -Number(row.dataset.place) : Number(row.dataset[order.value]));
    order.addEventListener("change", () => {
      for (const table of all(".cells")) {
        const body = table.tBodies[0];
        const sorted = [...body.rows].sort((one, other) => (
          figure(other) - figure(one) || Number(one.dataset.place) - Number(other.dataset.place)));
        body.append(...sorted);
      }
    });
  }

  for (const button of all("button.copy")) {
    const code = button.parentNode.querySelector("code");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  const DAY = 86400000;
  for (const place of all(".place")) {
    const [first, last] = [place.dataset.first, place.dataset.last].map((text) => Date.parse(text) / DAY);
    let nights = null;
    const figures = (column) => {
      nights ??= all(".nights tbody tr", place).reverse()
        .map((row) => [Date.parse(row.cells[0].textContent) / DAY, row]);
      return nights.map(([night, row]) => [night, row.cells[0].textContent, row.cells[column].textContent])
        .filter((one) => one[2]);
    };
    for (const figure of all(".series", place)) {
      const chart = figure.querySelector(".chart");
      if (!chart) continue;
      const [body, cursor, told] = [".body", ".cursor", "output"].map((one) => figure.querySelector(one));
      let mine = null;
      let at = -1;
      const show = (number) => {
        at = Math.max(0, Math.min(mine.length - 1, number));
        const [night, name, text] = mine[at];
        const x = `${last > first ? 0.5 + 99 * (night - first) / (last - first) : 50}%`;
        cursor.setAttribute("x1", x);
        cursor.setAttribute("x2", x);
        told.textContent = `${name}: ${text}`;
      };
      const known = () => (mine ??= figures(Number(figure.dataset.column))).length > 0;
      body.addEventListener("pointermove", (event) => {
        if (!known()) return;
        const box = body.getBoundingClientRect();
        const night = first + ((event.clientX - box.left) / box.width - 0.005) / 0.99 * (last - first);
        let [low, high] = [0, mine.length - 1];
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          if (mine[middle][0] > night) high = middle; else low = middle;
        }
        show(Math.abs(mine[low][0] - night) <= Math.abs(mine[high][0] - night) ? low : high);
      });
      chart.addEventListener("keydown", (event) => {
        if (!known()) return;
        const from = at < 0 ? mine.length : at;
        const to = { ArrowLeft: from - 1, ArrowRight: at < 0 ? 0 : from + 1, Home: 0, End: mine.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        show(to);
      });
    }
  }
})();
