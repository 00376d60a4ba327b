// The provider tree as a graph: the page's boxes drawn again as a tidy tree that folds and zooms.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const ROW = 44;
  const LABEL = 14; // from the middle of a node to its name
  const GAP = 46; // between the longest name of a column and the next column
  const BAR = 120;
  const STEPS = [0.4, 0.55, 0.75, 1, 1.35, 1.8];

  let boxes, panel, root;
  let isGraph = false;

  // A name as its link shows it, and the whole name, which starts with the hidden name of the root.
  function named(link) {
    const shown = link.querySelector("bdi");
    return { name: shown.lastChild.textContent, whole: shown.title || shown.textContent };
  }

  // Read a provider's data from its box, which remains the only source.
  function read(box) {
    const link = box.querySelector(":scope > .line a");
    const inside = box.querySelectorAll(":scope > .below > ul > .node");
    return {
      ...named(link),
      href: link.getAttribute("href"),
      current: link.getAttribute("aria-current") === "true",
      level: box.querySelector(":scope > .line .level")?.textContent ?? "",
      stocks: [...box.querySelectorAll(":scope > .stocks > div")].map((stock) => stock.textContent.replace(/\s+/g, " ").trim()),
      load: Number(box.dataset.load),
      children: [...inside].map(read),
    };
  }

  function withSharers(top) {
    const sharers = [...document.querySelectorAll("[data-sharer]")].map((link) => ({
      ...named(link), href: link.getAttribute("href"), level: "shares", stocks: [], load: NaN, children: [], shared: true,
    }));
    return { ...top, children: [...top.children, ...sharers] };
  }

  function made(name, attributes, ...inside) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...inside);
    return element;
  }

  const folded = new Set();
  let step = STEPS.indexOf(1);

  function drawnNode(node) {
    const { data } = node;
    const described = [data.level, ...data.stocks].filter(Boolean).join(", ");
    const link = made("a", { href: data.href }, made("text", { class: "name", x: LABEL, y: -2 }, data.name));
    link.append(made("title", {}, described ? `${data.whole}: ${described}` : data.whole));
    const group = made("g", { class: "provider", transform: `translate(${node.y},${node.x})` }, link);
    if (data.current) group.classList.add("current");
    if (Number.isFinite(data.load)) {
      const part = Math.min(1, data.load) * BAR;
      group.append(made("rect", { class: "track", x: LABEL, y: 6, width: BAR, height: 5 }));
      if (part > 0) group.append(made("rect", { class: data.load >= 1 ? "full" : "used", x: LABEL, y: 6, width: part, height: 5 }));
    }
    group.append(data.children.length ? fold(node) : made("circle", { class: "leaf", r: 4 }));
    return group;
  }

  function fold(node) {
    const isFolded = folded.has(node.data.href);
    const button = made("g", {
      class: isFolded ? "fold folded" : "fold", role: "button", tabindex: "0", "data-href": node.data.href,
      "aria-expanded": String(!isFolded), "aria-label": `What is below ${node.data.whole}`,
    }, made("circle", { r: 8 }), made("path", { d: isFolded ? "M-4 0H4M0 -4V4" : "M-4 0H4" }));
    const toggle = () => {
      if (!folded.delete(node.data.href)) folded.add(node.data.href);
      draw();
      panel.querySelector(`[data-href="${CSS.escape(node.data.href)}"]`)?.focus();
    };
    button.addEventListener("click", toggle);
    button.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
    return button;
  }

  function drawnLink({ source, target }) {
    const middle = (source.y + target.y) / 2;
    const d = `M${source.y},${source.x}C${middle},${source.x} ${middle},${target.x} ${target.y},${target.x}`;
    return made("path", { class: target.data.shared ? "link shared" : "link", d });
  }

  // Each column is as wide as its longest name requires.
  function columnWidths(nodes) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `700 13px ${getComputedStyle(panel).fontFamily}`;
    const widths = [];
    for (const { depth, data } of nodes) {
      widths[depth] = Math.max(widths[depth] ?? BAR, Math.ceil(pen.measureText(data.name).width));
    }
    return widths.map((width) => LABEL + width + GAP);
  }

  function draw() {
    const tree = d3.hierarchy(root, (data) => (folded.has(data.href) ? [] : data.children));
    d3.tree().nodeSize([ROW, 1])(tree);
    const nodes = tree.descendants();
    const widths = columnWidths(nodes);
    const starts = widths.map((_, depth) => widths.slice(0, depth).reduce((sum, one) => sum + one, 0));
    for (const node of nodes) node.y = starts[node.depth];
    const rows = nodes.map((node) => node.x);
    const top = Math.min(...rows) - ROW / 2;
    const height = Math.max(...rows) + ROW / 2 - top;
    const width = widths.reduce((sum, one) => sum + one, 14);
    const svg = made("svg", {
      viewBox: `-14 ${top} ${width} ${height}`, width: width * STEPS[step], height: height * STEPS[step],
      role: "group", "aria-label": "The tree as a graph",
    }, ...tree.links().map(drawnLink), ...nodes.map(drawnNode));
    panel.querySelector(".canvas").replaceChildren(svg);
    panel.querySelector("[data-zoom='1']").disabled = step === STEPS.length - 1;
    panel.querySelector("[data-zoom='-1']").disabled = step === 0;
  }

  function show(graph) {
    for (const button of document.querySelectorAll("[data-show]")) {
      button.setAttribute("aria-pressed", String((button.dataset.show === "graph") === graph));
    }
    isGraph = graph;
    boxes.hidden = graph;
    panel.hidden = !graph;
    if (graph) draw();
  }

  htmx.onLoad((content) => {
    const [shown, drawn] = ["[data-tree]", "[data-graph]"].map((name) => content.querySelector(name));
    if (!shown || !drawn || !window.d3) return;
    [boxes, panel] = [shown, drawn];
    root = withSharers(read(boxes.querySelector(".node")));
    for (const button of document.querySelectorAll("[data-show]")) {
      button.addEventListener("click", () => show(button.dataset.show === "graph"));
    }
    for (const button of panel.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => {
        step = Math.max(0, Math.min(STEPS.length - 1, step + Number(button.dataset.zoom)));
        draw();
      });
    }
    document.querySelector("[data-switch]").hidden = false;
    if (isGraph) show(true);
  });
})();
