// The page of `sentloom serve`: search, similarity, map, snippets. No libraries, no network but this server.

const $ = (id) => document.getElementById(id);
const SHOWN = 10; // results in a list
const LOOKED_AT = 50; // ranks that are known, to say where a text went
const MOST_SENTENCES = 30;
const state = { models: [], texts: 0, hits: new Set(), needsKey: false };

// ---- The server

async function call(path, body, signal) {
  const key = sessionStorage.getItem("sentloom-key");
  const headers = { ...(key && { authorization: `Bearer ${key}` }), ...(body && { "content-type": "application/json" }) };
  const options = { headers, signal, method: body ? "POST" : "GET", body: body && JSON.stringify(body) };
  const answer = await fetch(path, options).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer.");
  });
  if (answer.status === 401) askForKey();
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(found.error?.message ?? `The server answered ${answer.status}.`);
  return found;
}

function askForKey() {
  state.needsKey = true;
  $("key-form").hidden = false;
  $("about").textContent = "";
}

// Runs a job whose later calls replace earlier ones; errors go to a status line.
function latest(status, job) {
  let running;
  return async (...given) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      await job(mine.signal, ...given);
      if (!mine.signal.aborted) status.classList.remove("error");
    } catch (error) {
      if (mine.signal.aborted) return;
      status.textContent = error.message;
      status.classList.add("error");
    }
  };
}

// ---- Elements: text is always set as text, never as HTML

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const chosen = () => [...new Set([$("before").value, $("after").value].filter(Boolean))];
const number = (value) => value.toLocaleString("en");

// ---- Search

const search = latest($("search-status"), async (signal) => {
  const query = $("query").value.trim();
  const address = new URL(location);
  query ? address.searchParams.set("q", query) : address.searchParams.delete("q");
  history.replaceState(null, "", address);
  if (!query) return clearResults();
  const started = performance.now();
  const models = chosen();
  const answers = await Promise.all(models.map((model) => call("v1/search", { model, query, k: LOOKED_AT }, signal)));
  const lists = answers.map((answer) => answer.data[0]);
  if (signal.aborted) return;
  showResults(models, lists);
  $("search-status").textContent = summary(lists, performance.now() - started);
});

function clearResults() {
  $("results").replaceChildren();
  $("search-status").textContent = "";
  state.hits = new Set();
  map.draw();
}

function showResults(models, lists) {
  const rows = lists.map((list) => list.map((hit) => hit.row));
  const columns = lists.map((list, at) => resultList(models, at, list.slice(0, SHOWN), rows));
  $("results").replaceChildren(...columns);
  state.hits = new Set(rows.at(-1).slice(0, SHOWN));
  map.draw();
}

function resultList(models, at, hits, rows) {
  const sides = models.length > 1 ? ["before", "after"] : [""];
  const after = at === models.length - 1;
  const head = element("h3", { className: after ? "after" : "" }, models[at], element("span", {}, sides[at]));
  const items = hits.map((hit, rank) => resultItem(hit, rank, movement(hit.row, rank, at, rows)));
  return element("div", {}, head, element("ol", { className: "hits" }, ...items));
}

function resultItem(hit, rank, moved) {
  const bar = element("meter-bar", { ariaHidden: "true" }, element("i"));
  bar.style.setProperty("--share", Math.max(0, hit.score).toFixed(3));
  const below = element("span", { className: "below" }, bar, element("span", { className: "place" }, `${hit.score.toFixed(2)} · ${hit.place}`));
  return element("li", { className: moved.kind },
    element("span", { className: "rank" }, String(rank + 1)), element("span", { className: "text" }, hit.text),
    element("span", { className: "moved", title: moved.long }, element("span", { ariaHidden: "true" }, moved.short), element("span", { className: "hidden" }, moved.long)),
    below);
}

// How a result moved between the lists: what went away is marked on the left, what came or moved on the right.
function movement(row, rank, at, rows) {
  if (rows.length < 2) return { kind: "", short: "", long: "" };
  const other = rows[1 - at].indexOf(row);
  const known = other >= 0 ? `rank ${other + 1}` : `beyond ${LOOKED_AT}`;
  if (at === 0) {
    const gone = other < 0 || other >= SHOWN;
    return gone ? { kind: "gone", short: `→ ${other < 0 ? `>${LOOKED_AT}` : other + 1}`, long: `went away: ${known} after` } : { kind: "", short: "", long: "" };
  }
  if (other < 0 || other >= SHOWN) return { kind: "new", short: `new, was ${other < 0 ? `>${LOOKED_AT}` : other + 1}`, long: `new: ${known} before` };
  if (other > rank) return { kind: "up", short: `↑ ${other - rank}`, long: `moved up by ${other - rank}` };
  if (other < rank) return { kind: "", short: `↓ ${rank - other}`, long: `moved down by ${rank - other}` };
  return { kind: "", short: "=", long: "same rank" };
}

function summary(lists, milliseconds) {
  const time = `${number(Math.round(milliseconds))} ms`;
  if (lists.length < 2) return `${lists[0].length ? `The nearest of ${number(state.texts)} texts` : "Nothing found"}, ${time}.`;
  const ranks = lists[1].slice(0, SHOWN).map((hit) => lists[0].findIndex((other) => other.row === hit.row));
  const fresh = ranks.filter((rank) => rank < 0 || rank >= SHOWN).length;
  const up = ranks.filter((rank, now) => rank > now && rank < SHOWN).length;
  return `${fresh} of ${ranks.length} results are new, ${up} moved up. ${number(state.texts)} texts, ${time} for both models.`;
}

// ---- Similarity

const compare = latest($("compare-status"), async (signal) => {
  const lines = $("sentences").value.split("\n").map((line) => line.trim()).filter(Boolean);
  const a = lines.slice(0, MOST_SENTENCES);
  if (a.length < 2) throw new Error("Write at least two sentences, one per line.");
  const models = chosen();
  const answers = await Promise.all(models.map((model) => call("v1/similarity", { model, a }, signal)));
  if (signal.aborted) return;
  $("heat").replaceChildren(...answers.map((answer, at) => heatMap(models, at, a, answer.similarities)));
  const cut = lines.length > a.length ? ` Only the first ${MOST_SENTENCES} of ${lines.length}.` : "";
  $("compare-status").textContent = `${a.length} sentences compared.${cut}`;
});

function heatMap(models, at, sentences, rows) {
  const head = element("h3", { className: at === models.length - 1 ? "after" : "" }, models[at]);
  const numbers = sentences.map((sentence, place) => element("th", { scope: "col", title: sentence }, String(place + 1)));
  const body = rows.map((row, r) => element("tr", {},
    element("th", { scope: "row", title: sentences[r] }, element("b", {}, String(r + 1)), sentences[r]),
    ...row.map((cosine, c) => heatCell(cosine, r === c, `${sentences[r]} ↔ ${sentences[c]}`))));
  const table = element("table", { className: "heat keep", ariaLabel: `Cosines by ${models[at]}` },
    element("thead", {}, element("tr", {}, element("td"), ...numbers)), element("tbody", {}, ...body));
  return element("div", {}, head, element("div", { className: "scroll", tabIndex: 0 }, table));
}

function heatCell(cosine, self, title) {
  const heat = Math.max(0, cosine) ** 1.5;
  const cell = element("td", { title, className: self ? "self" : "" }, cosine.toFixed(2));
  cell.style.setProperty("--heat", heat.toFixed(3));
  return cell;
}

// ---- Map

const map = (() => {
  const canvas = $("canvas");
  const view = { scale: 1, x: 0.5, y: 0.5 }; // zoom, and the point of the plane that is in the middle
  const pointers = new Map();
  let found = null, selected = -1, loading = "", moved = 0;

  const load = latest($("map-text"), async (signal) => {
    const model = $("map-model").value;
    if (loading === model) return;
    loading = model;
    $("map-text").textContent = "Computing the map. It is stored, so that this happens once …";
    try {
      found = await call(`v1/map?model=${encodeURIComponent(model)}`, undefined, signal);
    } catch (error) {
      loading = "";
      throw error;
    }
    selected = -1;
    $("map-text").textContent = "";
    $("map-about").textContent = `Texts of similar meaning are close to each other: ${number(found.rows.length)}` +
      `${found.rows.length < state.texts ? ` of ${number(state.texts)}` : ""} texts by t-SNE. Search results are marked.`;
    draw();
  });

  const frame = () => ({ width: canvas.clientWidth, height: canvas.clientHeight, pad: 24 });
  function toScreen([x, y]) {
    const { width, height, pad } = frame();
    return [width / 2 + (x - view.x) * (width - 2 * pad) * view.scale, height / 2 + (y - view.y) * (height - 2 * pad) * view.scale];
  }
  function toPlane([x, y]) {
    const { width, height, pad } = frame();
    return [(x - width / 2) / (width - 2 * pad) / view.scale + view.x, (y - height / 2) / (height - 2 * pad) / view.scale + view.y];
  }

  function draw() {
    if (!found) return;
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = frame();
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
    const dot = (at, radius, fill) => {
      const [x, y] = toScreen(found.points[at]);
      if (x < -9 || y < -9 || x > width + 9 || y > height + 9) return;
      context.fillStyle = fill;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
    };
    const small = Math.min(5, 2 + view.scale * 0.4);
    context.globalAlpha = 0.7;
    found.rows.forEach((row, at) => state.hits.has(row) || dot(at, small, colour("--base")));
    context.globalAlpha = 1;
    found.rows.forEach((row, at) => state.hits.has(row) && (dot(at, small + 4, colour("--paper")), dot(at, small + 2.5, colour("--accent"))));
    if (selected >= 0) dot(selected, small + 5, colour("--paper")), dot(selected, small + 3, colour("--care"));
  }

  function nearest([x, y], within, allowed = () => true) {
    let best = -1, least = within ** 2;
    found?.points.forEach((point, at) => {
      const [px, py] = toScreen(point);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least && allowed(px - x, py - y)) [best, least] = [at, distance];
    });
    return best;
  }

  function select(at) {
    if (at === selected) return;
    selected = at;
    $("map-text").textContent = at < 0 ? "" : found.texts[at];
    draw();
  }

  function zoom(factor, around = [canvas.clientWidth / 2, canvas.clientHeight / 2]) {
    if (!factor) Object.assign(view, { scale: 1, x: 0.5, y: 0.5 });
    else {
      const [x, y] = toPlane(around);
      const scale = Math.min(60, Math.max(0.8, view.scale * factor));
      view.x = x + (view.x - x) * (view.scale / scale);
      view.y = y + (view.y - y) * (view.scale / scale);
      view.scale = scale;
    }
    draw();
  }

  function pan(dx, dy) {
    const { width, height, pad } = frame();
    view.x -= dx / (width - 2 * pad) / view.scale;
    view.y -= dy / (height - 2 * pad) / view.scale;
    draw();
  }

  // From the selected text to the nearest one in a direction, inside a quarter of the plane.
  function step(dx, dy) {
    const from = selected < 0 ? [canvas.clientWidth / 2, canvas.clientHeight / 2] : toScreen(found.points[selected]);
    const ahead = (x, y) => { const along = x * dx + y * dy; return along > 0.5 && along >= Math.abs(x * dy) + Math.abs(y * dx) - 1e-6; };
    const next = selected < 0 ? nearest(from, Infinity) : nearest(from, Infinity, ahead);
    if (next < 0) return;
    select(next);
    const [x, y] = toScreen(found.points[next]);
    if (x < 0 || y < 0 || x > canvas.clientWidth || y > canvas.clientHeight) [view.x, view.y] = found.points[next], draw();
  }

  function searchFor(at) {
    $("query").value = found.texts[at];
    search();
  }

  const place = (event) => [event.offsetX, event.offsetY];
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, place(event));
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    const before = pointers.get(event.pointerId);
    if (!before) return select(nearest([x, y], 18));
    moved += Math.hypot(x - before[0], y - before[1]);
    const others = [...pointers].filter(([id]) => id !== event.pointerId);
    if (others.length) {
      const [, other] = others[0];
      zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(1, Math.hypot(before[0] - other[0], before[1] - other[1])), other);
    } else if (moved > 4) {
      canvas.classList.add("drag");
      pan(x - before[0], y - before[1]);
    }
    pointers.set(event.pointerId, [x, y]);
  });
  const released = (event) => {
    const tapped = pointers.delete(event.pointerId) && moved <= 4 && event.type === "pointerup";
    canvas.classList.remove("drag");
    if (!tapped) return;
    const at = nearest(place(event), 24);
    if (at >= 0 && at === selected && event.pointerType === "mouse") searchFor(at);
    else select(at);
  };
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("pointerleave", () => pointers.size || document.activeElement === canvas || select(-1));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), place(event));
  }, { passive: false });
  const keys = {
    ArrowLeft: () => step(-1, 0), ArrowRight: () => step(1, 0), ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => zoom(0), Escape: () => select(-1),
    Enter: () => selected >= 0 && searchFor(selected),
  };
  canvas.addEventListener("keydown", (event) => {
    if (!found || !keys[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  document.querySelectorAll("[data-zoom]").forEach((button) => button.addEventListener("click", () => zoom(Number(button.dataset.zoom))));
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return { draw, load, canvas };
})();

// ---- Snippets

function snippets() {
  const model = chosen().at(-1), url = location.origin, key = state.needsKey;
  const json = JSON.stringify({ model, input: ["Where is the canteen?"] });
  return {
    curl: `curl ${url}/v1/embeddings \\\n${key ? '  -H "Authorization: Bearer $SENTLOOM_API_KEY" \\\n' : ""}  -H "Content-Type: application/json" \\\n  -d '${json}'`,
    Python: `${key ? "import os\n\n" : ""}from openai import OpenAI\n\nclient = OpenAI(base_url="${url}/v1", api_key=${key ? 'os.environ["SENTLOOM_API_KEY"]' : '"none"'})\n` +
      `answer = client.embeddings.create(model="${model}", input=["Where is the canteen?"])\nvector = answer.data[0].embedding`,
    LangChain: `${key ? "import os\n\n" : ""}from langchain_openai import OpenAIEmbeddings\n\nembeddings = OpenAIEmbeddings(\n    model="${model}", base_url="${url}/v1", api_key=${key ? 'os.environ["SENTLOOM_API_KEY"]' : '"none"'},\n    check_embedding_ctx_length=False,  # send texts, not token ids\n)\nvector = embeddings.embed_query("Where is the canteen?")`,
  };
}

function showSnippets() {
  $("snippets").replaceChildren(...Object.entries(snippets()).map(([name, code]) => {
    const text = element("code", {}, code);
    const button = element("button", { type: "button", ariaLabel: `Copy the ${name} example` }, "Copy");
    button.addEventListener("click", () => copy(text, button));
    return element("div", { className: "snippet" }, element("h3", {}, name), button, element("pre", { tabIndex: 0 }, text));
  }));
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch { // not allowed, as over plain HTTP from another machine
    getSelection().selectAllChildren(text);
    button.textContent = "Press Ctrl-C";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

// ---- Start

function fillSelects() {
  const names = state.models.map((model) => model.id);
  for (const id of ["before", "after", "map-model"]) {
    $(id).replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  }
  $("before").value = names[0];
  $("after").value = $("map-model").value = names.at(-1);
  $("choice").hidden = $("map-choice").hidden = names.length < 2;
}

async function start() {
  const found = await call("v1/models");
  Object.assign(state, { models: found.data, texts: found.texts });
  $("key-form").hidden = true;
  const parts = found.data.map((model) => `${model.id} (${number(model.dimension)} dimensions)`);
  $("about").textContent = `${parts.join(" and ")}${found.texts ? `, over ${number(found.texts)} texts` : ""}.`;
  document.querySelectorAll(".needs-corpus").forEach((part) => { part.hidden = !found.texts; });
  fillSelects();
  showSnippets();
  compare();
  if (!found.texts) return;
  $("query").value = new URL(location).searchParams.get("q") ?? "";
  if ($("query").value) search();
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && map.load()).observe(map.canvas);
}

const begin = () => start().catch((error) => {
  if ($("key-form").hidden) $("about").textContent = error.message;
  else if (sessionStorage.getItem("sentloom-key")) $("key-status").textContent = error.message;
});

let typing;
$("query").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, 200); });
$("search-form").addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typing); search(); });
$("compare-form").addEventListener("submit", (event) => { event.preventDefault(); compare(); });
for (const id of ["before", "after"]) $(id).addEventListener("change", () => { search(); compare(); showSnippets(); });
$("map-model").addEventListener("change", map.load);
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("sentloom-key", $("key").value.trim());
  begin();
});
begin();
