// Draws what a page shows as SVG. Loaded before the page: what is drawn on a canvas is recorded as it is drawn.
(() => {
  const number = (value) => String(Math.round(value * 10) / 10);
  const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

  const steps = {
    moveTo: (x, y) => `M${number(x)} ${number(y)}`,
    lineTo: (x, y) => `L${number(x)} ${number(y)}`,
    quadraticCurveTo: (cx, cy, x, y) => `Q${number(cx)} ${number(cy)} ${number(x)} ${number(y)}`,
    closePath: () => "Z",
    rect: (x, y, w, h) => `M${number(x)} ${number(y)}h${number(w)}v${number(h)}h${number(-w)}Z`,
    // Only whole circles are drawn.
    arc: (x, y, r) => `M${number(x - r)} ${number(y)}a${number(r)} ${number(r)} 0 1 0 ${number(2 * r)} 0a${number(r)} ${number(r)} 0 1 0 ${number(-2 * r)} 0`,
    roundRect: (x, y, w, h, radius) => {
      const r = Math.min(radius, w / 2, h / 2);
      const turn = (dx, dy) => `a${number(r)} ${number(r)} 0 0 1 ${number(dx)} ${number(dy)}`;
      return `M${number(x + r)} ${number(y)}h${number(w - 2 * r)}${turn(r, r)}v${number(h - 2 * r)}${turn(-r, r)}h${number(2 * r - w)}${turn(-r, -r)}v${number(2 * r - h)}${turn(r, -r)}Z`;
    },
  };

  const paths = new WeakMap();
  const NativePath = window.Path2D;
  window.Path2D = class extends NativePath {
    constructor(text) {
      super(text);
      paths.set(this, typeof text === "string" ? text : "");
    }
  };
  const context = CanvasRenderingContext2D.prototype;
  const drawings = new WeakMap();
  const drawing = (own) => {
    if (!drawings.has(own.canvas)) drawings.set(own.canvas, { parts: [], path: "" });
    return drawings.get(own.canvas);
  };
  for (const [name, step] of Object.entries(steps)) {
    const onContext = context[name];
    context[name] = function (...values) {
      drawing(this).path += step(...values);
      return onContext.apply(this, values);
    };
    const onPath = NativePath.prototype[name];
    window.Path2D.prototype[name] = function (...values) {
      paths.set(this, paths.get(this) + step(...values));
      return onPath.apply(this, values);
    };
  }
  const wrap = (name, record) => {
    const native = context[name];
    context[name] = function (...values) {
      record.call(this, drawing(this), values);
      return native.apply(this, values);
    };
  };
  const place = (own) => {
    const { a, b, c, d, e, f } = own.getTransform();
    const opacity = own.globalAlpha < 1 ? ` opacity="${number(own.globalAlpha)}"` : "";
    return `transform="matrix(${[a, b, c, d].map((value) => Math.round(value * 1000) / 1000).join(" ")} ${number(e)} ${number(f)})"${opacity}`;
  };
  wrap("clearRect", (own) => { own.parts = []; });
  wrap("beginPath", (own) => { own.path = ""; });
  wrap("fill", function (own, [path]) {
    own.parts.push(`<path d="${path ? paths.get(path) : own.path}" fill="${this.fillStyle}" ${place(this)}/>`);
  });
  wrap("stroke", function (own, [path]) {
    const dash = this.getLineDash().length ? ` stroke-dasharray="${this.getLineDash().join(" ")}"` : "";
    own.parts.push(`<path d="${path ? paths.get(path) : own.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${number(this.lineWidth)}"${dash} ${place(this)}/>`);
  });
  wrap("fillRect", function (own, box) {
    own.parts.push(`<path d="${steps.rect(...box)}" fill="${this.fillStyle}" ${place(this)}/>`);
  });
  wrap("fillText", function (own, [text, x, y, room]) {
    const [, bold, size] = /^(?:(\d+|bold) )?([\d.]+)px/.exec(this.font);
    const length = Math.min(this.measureText(text).width, room ?? Infinity);
    const anchor = { center: "middle", right: "end" }[this.textAlign] ?? "start";
    const base = this.textBaseline === "middle" ? y + size * 0.35 : y;
    own.parts.push(`<text x="${number(x)}" y="${number(base)}" font-size="${number(size)}"${bold ? ` font-weight="${bold}"` : ""} text-anchor="${anchor}" textLength="${number(length)}" lengthAdjust="spacingAndGlyphs" fill="${this.fillStyle}" ${place(this)}>${escape(text)}</text>`);
  });

  const measure = document.createElement("canvas").getContext("2d");
  const isSeen = (colour) => !/^rgba\(.*, 0\)$|transparent/.test(colour);

  function boxes(element, style, box) {
    const parts = [];
    const radius = Math.min(parseFloat(style.borderTopLeftRadius) || 0, box.height / 2);
    const shape = `x="${number(box.left)}" y="${number(box.top)}" width="${number(box.width)}" height="${number(box.height)}" rx="${number(radius)}"`;
    const widths = ["Top", "Right", "Bottom", "Left"].map((side) => parseFloat(style[`border${side}Width`]));
    const line = style.borderTopColor;
    const framed = widths.every((width) => width > 0) && isSeen(line);
    if (isSeen(style.backgroundColor) || framed)
      parts.push(`<rect ${shape} fill="${isSeen(style.backgroundColor) ? style.backgroundColor : "none"}"${framed ? ` stroke="${line}"` : ""}/>`);
    if (!framed && widths[2] > 0 && isSeen(style.borderBottomColor))
      parts.push(`<path d="M${number(box.left)} ${number(box.bottom)}h${number(box.width)}" stroke="${style.borderBottomColor}" stroke-width="${widths[2]}"/>`);
    if (!framed && widths[3] > 0 && isSeen(style.borderLeftColor))
      parts.push(`<path d="M${number(box.left)} ${number(box.top)}v${number(box.height)}" stroke="${style.borderLeftColor}" stroke-width="${widths[3]}"/>`);
    return parts;
  }

  /** The lines of a text node: words with the same top. */
  function lines(node) {
    const range = document.createRange();
    const found = [];
    for (const word of node.data.matchAll(/\S+\s*/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].trimEnd().length);
      const box = range.getBoundingClientRect();
      if (!box.width) continue;
      const last = found[found.length - 1];
      if (last && Math.abs(last.box.top - box.top) < 3) {
        last.text += ` ${word[0].trimEnd()}`;
        last.right = box.right;
      } else found.push({ text: word[0].trimEnd(), box, right: box.right });
    }
    return found;
  }

  function texts(node, style, clip) {
    measure.font = style.font;
    const { fontBoundingBoxAscent: up, fontBoundingBoxDescent: down } = measure.measureText("x");
    return lines(node).flatMap(({ text, box, right }) => {
      if (box.top < clip.top - 1 || box.bottom > clip.bottom + 1 || box.left >= clip.right) return [];
      let shown = text;
      let end = right;
      while (end > clip.right && shown.length > 1) {
        shown = shown.slice(0, -1);
        end = box.left + measure.measureText(`${shown}…`).width;
      }
      if (shown !== text) shown += "…";
      const base = box.top + (box.height * up) / (up + down);
      const bold = Number(style.fontWeight) >= 550 ? ` font-weight="600"` : "";
      const mono = style.fontFamily.includes("mono") ? ` font-family="monospace"` : "";
      return [`<text x="${number(box.left)}" y="${number(base)}" font-size="${number(parseFloat(style.fontSize))}"${bold}${mono} textLength="${number(end - box.left)}" lengthAdjust="spacingAndGlyphs" fill="${style.color}">${escape(shown)}</text>`];
    });
  }

  function slider(input, box, style) {
    const middle = box.top + box.height / 2;
    const x = box.left + 8 + ((input.value - input.min) / (input.max - input.min || 1)) * (box.width - 16);
    const line = (from, to, colour) => `<path d="M${number(from)} ${number(middle)}H${number(to)}" stroke="${colour}" stroke-width="6" stroke-linecap="round"/>`;
    return [line(box.left + 3, box.right - 3, "#c8ccd4"), line(box.left + 3, x, style.accentColor), `<circle cx="${number(x)}" cy="${number(middle)}" r="8" fill="${style.accentColor}"/>`];
  }

  function walk(element, clip, parts) {
    if (!element.checkVisibility({ visibilityProperty: true }) || element.matches(".hidden-text, .skip, option")) return;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (element.matches("canvas")) {
      const made = drawings.get(element);
      if (made) parts.push(`<svg x="${number(box.left)}" y="${number(box.top)}" width="${number(box.width)}" height="${number(box.height)}">${made.parts.join("")}</svg>`);
      return;
    }
    if (element.matches("svg")) {
      parts.push(`<g transform="translate(${number(box.left)} ${number(box.top)}) scale(${number(box.width / (element.viewBox.baseVal.width || box.width))})" color="${style.color}" fill="${style.fill}" stroke="${style.stroke}" stroke-width="${style.strokeWidth}" stroke-linecap="round" stroke-linejoin="round">${element.innerHTML}</g>`);
      return;
    }
    if (style.display !== "contents") parts.push(...boxes(element, style, box));
    if (element.matches("input[type=range]")) parts.push(...slider(element, box, style));
    const cut = style.overflow !== "visible" && style.display !== "inline";
    const inner = cut ? { top: Math.max(clip.top, box.top), bottom: Math.min(clip.bottom, box.bottom), right: Math.min(clip.right, box.right) } : clip;
    const layer = (node) => (node.nodeType === Node.ELEMENT_NODE && Number(getComputedStyle(node).zIndex)) || 0;
    for (const node of [...element.childNodes].sort((a, b) => layer(a) - layer(b))) {
      if (node.nodeType === Node.TEXT_NODE) parts.push(...texts(node, style, inner));
      else if (node.nodeType === Node.ELEMENT_NODE) walk(node, inner, parts);
    }
  }

  window.pagePicture = () => {
    const { innerWidth: width, innerHeight: height } = window;
    const parts = [];
    walk(document.body, { top: 0, bottom: height, right: width }, parts);
    const ground = getComputedStyle(document.documentElement).backgroundColor;
    return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="Roboto, 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif">\n<rect width="${width}" height="${height}" fill="${ground}"/>\n${parts.join("\n")}\n</svg>\n`;
  };
})();
