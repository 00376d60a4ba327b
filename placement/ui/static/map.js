// Conveniences of the map: a card for the host under the pointer, arrow keys between cells, and a time slider.
"use strict";

document.addEventListener("keydown", (event) => {
  const card = document.querySelector("#card");
  if (event.key === "Escape" && card) card.hidden = true;
});

htmx.onLoad((content) => {
  const maps = content.querySelector(".maps");
  const card = content.querySelector("#card");
  if (!maps || !card) return;

  const WAIT_MS = 150;
  const GAP = 8;
  const STEP_MS = 15 * 60 * 1000;
  const known = new Map();
  let waiting;

  // The card is a page of its own, requested with what the cells' form would submit.
  async function cardOf(cell) {
    const said = new URLSearchParams(new FormData(maps));
    said.set("host", cell.value);
    const url = `${maps.dataset.card}?${said}`;
    if (!known.has(url)) {
      const answer = await fetch(url);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      known.set(url, page.querySelector("#card"));
    }
    return known.get(url);
  }

  function pointAt(cell) {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const found = await cardOf(cell);
      if (!found) return;
      card.replaceChildren(...found.cloneNode(true).childNodes);
      card.hidden = false;
      place(cell.getBoundingClientRect());
    }, WAIT_MS);
  }

  // Beside the cell, on the side that has room; a phone shows the card at the bottom.
  function place(box) {
    const right = box.right + GAP, left = box.left - GAP - card.offsetWidth;
    const beside = right + card.offsetWidth < window.innerWidth ? right : Math.max(GAP, left);
    const top = Math.max(GAP, Math.min(box.top, window.innerHeight - GAP - card.offsetHeight));
    const fixed = { left: `${beside}px`, top: `${top}px`, right: "auto", bottom: "auto" };
    if (window.innerWidth > 640) Object.assign(card.style, fixed);
  }

  const cellAt = (event) => event.target.closest(".cells button");
  for (const name of ["pointerover", "focusin"]) {
    maps.addEventListener(name, (event) => cellAt(event) && pointAt(cellAt(event)));
  }
  maps.addEventListener("pointerleave", () => clearTimeout(waiting));

  // All cells are one tab stop; arrow keys move between them, up and down by their position on screen.
  const cells = [...maps.querySelectorAll(".cells button")];
  for (const cell of cells.slice(1)) cell.tabIndex = -1;
  maps.addEventListener("keydown", (event) => {
    const cell = cellAt(event);
    const next = cell && neighbour(cell, event.key);
    if (!next) return;
    event.preventDefault();
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });

  function neighbour(cell, key) {
    const at = cells.indexOf(cell);
    if (key === "ArrowRight") return cells[at + 1];
    if (key === "ArrowLeft") return cells[at - 1];
    if (key !== "ArrowDown" && key !== "ArrowUp") return undefined;
    const from = cell.getBoundingClientRect();
    const beyond = cells.filter((other) => {
      const box = other.getBoundingClientRect();
      return key === "ArrowDown" ? box.top >= from.bottom : box.bottom <= from.top;
    });
    const far = (other) => {
      const box = other.getBoundingClientRect();
      return 4 * Math.abs(box.top - from.top) + Math.abs(box.left - from.left);
    };
    return beyond.sort((one, other) => far(one) - far(other))[0];
  }

  const slider = content.querySelector(".slider input");
  if (slider) {
    const utc = (text) => Date.parse(`${text}Z`);
    const latest = utc(slider.dataset.latest);
    const shown = slider.dataset.at ? utc(slider.dataset.at) : latest;
    slider.value = String(Math.round((shown - latest) / STEP_MS));
    slider.parentElement.hidden = false;
    slider.addEventListener("change", () => {
      const address = new URL(window.location.href);
      const steps = Number(slider.value);
      if (steps === 0) address.searchParams.delete("at");
      else address.searchParams.set("at", new Date(latest + steps * STEP_MS).toISOString().slice(0, 16));
      window.location.assign(address);
    });
  }
});
