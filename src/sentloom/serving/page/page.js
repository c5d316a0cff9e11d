// The page of `sentloom serve`: search, similarity, snippets. No libraries, no network but this server.

const $ = (id) => document.getElementById(id);
const SHOWN = 10; // results in a list
const LOOKED_AT = 50; // ranks that are known, to say where a text went
const MOST_SENTENCES = 30;
const state = { models: [], texts: 0, needsKey: false };

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
}

function showResults(models, lists) {
  const rows = lists.map((list) => list.map((hit) => hit.row));
  const columns = lists.map((list, at) => resultList(models, at, list.slice(0, SHOWN), rows));
  $("results").replaceChildren(...columns);
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
  for (const id of ["before", "after"]) {
    $(id).replaceChildren(...names.map((name) => element("option", { value: name }, name)));
  }
  $("before").value = names[0];
  $("after").value = names.at(-1);
  $("choice").hidden = names.length < 2;
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
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("sentloom-key", $("key").value.trim());
  begin();
});
begin();
