// The page: a patient, up to three plans, and what the model says of them. Text from outside only ever becomes text nodes.

const MOST_PLANS = 3;
const COLOURS = ["--first", "--second", "--third"];
const DASHES = ["solid", "dash", "dot"];
const SAMPLES = ["none", "9 6", "3 3"]; // the same in the text
const HISTORY_SHOWN = 2; // times the longest horizon
const MOST_SIGNS = 40; // of a plan's name
const SLOW = 1000; // milliseconds, after which a question that has changed is given up
const STEPS = 50; // of the timeline: what is clicked or dragged lies on one of them

const at = (id) => document.getElementById(id);
const state = {
  card: null, patients: [], patient: null, history: null, record: null, notes: [], now: null, better: "", outcome: null,
  plans: [{ name: "A", doses: [], infusions: [], keeps: false }, { name: "B", doses: [], infusions: [], keeps: false }],
  active: 0, answer: null, about: null, flaws: [],
};

// --- talking to the server

async function ask(path, body, signal) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  const response = await fetch(path, { ...options, signal }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer. Start it again; what you see here stays.");
  });
  const content = await response.json();
  if (!response.ok) throw Object.assign(new Error(content.detail), { problem: content });
  return content;
}

async function start() {
  theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
  for (;;) {
    try {
      state.card = await ask("api/card");
      break;
    } catch (error) {
      if (error.problem?.title !== "Not ready") return tell(error);
      at("model").textContent = "The model is being made ready …";
      await new Promise((later) => setTimeout(later, 500));
    }
  }
  const { card } = state;
  at("model").textContent = `${card.model}, up to ${number(card.max_horizon)} ${card.learned.time_unit}s ahead`;
  at("model").title = card.settings;
  at("notice").textContent = card.notice;
  at("assumptions").textContent = card.assumptions;
  at("calibration").textContent = card.calibration ? `On the loaded patients: ${card.calibration}.` : "";
  for (const unit of document.querySelectorAll(".unit")) unit.textContent = `${card.learned.time_unit}s`;
  for (const outcome of card.outcomes) at("outcome").append(new Option(outcome));
  at("outcome-label").hidden = card.outcomes.length < 2;
  const keeps = card.learned.treatments.some((one) => one.rate !== null);
  for (const one of state.plans) one.keeps = keeps;
  for (const { name } of card.learned.treatments.slice(0, 1)) put(state.plans[1], name, 0); // so that there is something to compare
  at("sure").textContent = `± holds 95% after ${after(card.max_horizon)} if nothing changes`;
  drawAdders();
  await listPatients();
  await openLink();
}

let lists = 0;

async function listPatients() {
  const turn = (lists += 1);
  const query = new URLSearchParams({ search: at("search").value, sort: at("sort").value, size: 200 });
  const found = await ask(`api/patients?${query}`);
  if (turn !== lists) return; // something else has been searched for meanwhile
  state.patients = found.patients;
  at("patients").replaceChildren(...found.patients.map((line) => {
    const item = element("li", { role: "option", tabIndex: -1 },
      element("span", { className: "who", textContent: line.patient, title: line.patient }),
      element("span", { className: "how", textContent: line.width === null ? "" : `± ${number(line.width / 2)}` }));
    item.addEventListener("click", () => choose(line.patient));
    item.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(line.patient); }
      const next = { ArrowDown: item.nextSibling, ArrowUp: item.previousSibling, Home: item.parentNode.firstChild,
        End: item.parentNode.lastChild }[event.key];
      if (next) { event.preventDefault(); next.focus(); }
    });
    return item;
  }));
  at("sure").hidden = found.patients.every((line) => line.width === null);
  markChosen();
  const hidden = found.total - found.patients.length;
  at("more").textContent = hidden > 0 ? `and ${hidden.toLocaleString()} more: search for them` : `${found.total.toLocaleString()} patients`;
}

// One stop of the Tab key for all of them; arrow keys go on from there.
function markChosen() {
  const items = [...at("patients").children];
  for (const item of items) {
    const chosen = state.patient !== null && item.firstChild.textContent === state.patient;
    item.setAttribute("aria-selected", String(chosen));
    item.tabIndex = chosen ? 0 : -1;
    if (chosen) item.scrollIntoView({ block: "nearest" });
  }
  if (items.length && items.every((item) => item.tabIndex === -1)) items[0].tabIndex = 0;
}

let choices = 0;

async function choose(patient, now = null) {
  const turn = (choices += 1);
  try {
    const query = new URLSearchParams({ patient });
    if (now !== null) query.set("at", now);
    const record = await ask(`api/record?${query}`);
    if (turn !== choices) return; // somebody else has been chosen meanwhile
    const before = Number((record.last - state.card.max_horizon).toFixed(2));
    if (now === null && before >= record.first) {
      await choose(patient, before); // so that what came later can be seen
      return;
    }
    Object.assign(state, { patient, record, history: null, notes: [], now: record.at });
    at("followed").hidden = false;
    opened(`Patient ${patient}`);
  } catch (error) {
    if (turn !== choices) return;
    at("at").value = state.now ?? ""; // what is shown is still of that time
    tell(error);
  }
}

function useOwn({ history, at: now, warnings }) {
  choices += 1;
  Object.assign(state, { patient: null, history, record: null, notes: warnings, now });
  at("followed").hidden = true;
  opened("Own patient");
}

function opened(title) {
  Object.assign(at("who"), { textContent: title, title });
  at("at").value = state.now;
  markChosen();
  drawPlans();
  changedAltogether();
}

// --- asking the model

let pending = null; // the question that is being answered, and since when
let stale = false; // something has changed since
let timer = 0;
let patience = 0;

// While a dose is dragged there is an answer as often as the model can give one: a question is left to end, unless it is slow.
function changed() {
  stale = true;
  expectAnswer();
  timer ||= setTimeout(() => {
    timer = 0;
    keepLink();
    if (pending === null || performance.now() - pending.since > SLOW) compare();
  }, 60);
}

// About somebody else, or of another kind: what is being answered is of no use.
function changedAltogether() {
  pending?.stop.abort();
  pending = null;
  changed();
}

// What is shown turns faint where its answer is late.
function expectAnswer() {
  at("answers").setAttribute("aria-busy", "true");
  patience ||= setTimeout(() => document.body.classList.add("waiting"), 400);
}

function answered() {
  clearTimeout(patience);
  patience = 0;
  document.body.classList.remove("waiting");
  if (stale) expectAnswer();
  else at("answers").setAttribute("aria-busy", "false");
}

async function compare() {
  if (state.patient === null && state.history === null) return;
  pending?.stop.abort();
  const mine = (pending = { stop: new AbortController(), since: performance.now() });
  stale = false;
  const about = subject();
  const who = state.history === null ? { patient: state.patient } : { history: state.history };
  const plans = Object.fromEntries(state.plans.map((plan) => [plan.name, asPlan(plan)]));
  const asked = { ...who, at: state.now, plans, versus: state.plans[0].name, horizons: state.card.curve,
    outcome: state.outcome, better: state.better || null };
  try {
    const answer = await ask("api/compare", asked, mine.stop.signal);
    if (mine !== pending) return;
    Object.assign(state, { answer, about });
    tell(null);
    drawAnswer();
    answered();
  } catch (error) {
    if (mine === pending && error.name !== "AbortError") {
      const isTime = error.problem?.errors?.some(({ field }) => field === "at");
      if (isTime && state.about?.of === about.of) { // what is shown is still of that time
        state.now = state.about.now;
        at("at").value = state.now;
        drawPlans();
        keepLink();
      }
      tell(error);
    }
  }
  if (mine !== pending) return;
  pending = null;
  if (stale && !timer) compare();
}

// Whom an answer is about, as they are now: what is drawn of it must not be mixed with somebody or something else.
function subject() {
  const { history, record, now } = state;
  const plans = structuredClone(state.plans);
  const about = { of: history ?? state.patient, who: at("who").textContent, now, plans };
  if (history === null) return { ...about, known: record.history, later: record.later };
  const ahead = history.observations.filter(({ time }) => time > now && time <= now + state.card.max_horizon);
  return { ...about, known: asKnown(history, now), later: ahead.map((row) => ({ ...row, time: row.time - now })) };
}

// What had been measured and given by then; what is given at that very time is part of a plan, and what runs has no end yet.
function asKnown(history, now) {
  const given = history.treatments.filter(({ start }) => start < now);
  return { ...history, observations: history.observations.filter(({ time }) => time <= now),
    treatments: given.map((event) => ({ ...event, stop: event.stop !== null && event.stop < now ? event.stop : null })) };
}

function asPlan(plan) {
  return {
    doses: plan.doses.map(({ treatment, time, dose }) => ({ treatment, time, dose })),
    infusions: plan.infusions.map(({ treatment, start, stop, rate }) => ({ treatment, start, stop, rate })),
    keeps_running: plan.keeps ? [{ without: replaced(plan) }] : [],
  };
}

function tell(error) {
  at("problem").hidden = error === null;
  at("problem").textContent = error === null ? "" : (error.problem?.errors ?? []).map(ofPlan).find((text) => text) ?? error.message;
  state.flaws = error?.problem?.errors ?? [];
  markFlaws();
}

// What is wrong with a plan, in words of the page.
function ofPlan({ field, message }) {
  const longestFirst = [...state.plans].sort((a, b) => b.name.length - a.name.length); // a name may begin with another
  const one = longestFirst.find(({ name }) => `${field}.`.startsWith(`plans.${name}.`));
  if (one === undefined) return "";
  const [kind, place, part] = field.slice(`plans.${one.name}.`.length).split(".");
  const event = one[kind]?.[Number(place)];
  return `${[`Plan ${one.name}`, event?.treatment, event && part].filter((text) => text).join(", ")}: ${message}`;
}

function markFlaws() {
  const fields = state.flaws.map(({ field }) => field);
  for (const input of at("events").querySelectorAll("input[data-field]")) {
    const [kind, place, part] = input.dataset.field.split(".");
    const row = `plans.${plan().name}.${kind}.${place}`;
    const isWrong = fields.includes(`${row}.${part}`) || (part !== "rate" && fields.includes(row)); // its times together
    input.setAttribute("aria-invalid", String(isWrong));
  }
}

// --- the picture

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const label = (text) => text.replaceAll("<", "‹").replaceAll(">", "›"); // the plotting script reads tags

function faint(colour, share) {
  const part = (i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
  return `rgba(${part(0)}, ${part(1)}, ${part(2)}, ${share})`;
}

let picture = null;

function drawAnswer() {
  const { answer, about: { known, now, later: ahead } } = state;
  const name = answer.outcome;
  const from = now - HISTORY_SHOWN * state.card.max_horizon;
  const seen = known.observations.filter((row) => row.values[name] !== undefined && row.time >= from);
  const later = ahead.filter((row) => row.values[name] !== undefined);
  const traces = [];
  state.plans.forEach((plan, i) => {
    const outlook = answer.outlooks[plan.name];
    if (!outlook) return;
    const colour = style(COLOURS[i]);
    const times = answer.elapsed.map((time) => now + time);
    const line = { x: times, mode: "lines", hoverinfo: "skip", showlegend: false };
    const active = i === state.active;
    for (const [k, band] of [...outlook.bands].reverse().entries()) {
      if (!active && k > 0) continue; // of the others the widest band alone
      const fill = faint(colour, active ? 0.18 : 0.1);
      traces.push({ ...line, y: band.lower, line: { width: 0 } },
        { ...line, y: band.upper, line: { width: 0 }, fill: "tonexty", fillcolor: fill });
    }
    if (active) {
      const levels = outlook.bands.map((band) => Math.round(100 * band.level)).join(", ");
      traces.at(-1).name = `${levels}%`;
      Object.assign(traces.at(-1), { showlegend: true, legendrank: 2000 });
    }
    if (active && outlook.expectation) {
      const { level, lower, upper } = outlook.expectation;
      const thin = { ...line, line: { width: 1, color: colour } };
      traces.push({ ...thin, y: lower }, { ...thin, y: upper, showlegend: true, legendrank: 2001, name: `expectation, ${Math.round(100 * level)}%` });
    }
    traces.push({ ...line, y: outlook.median, name: label(plan.name), showlegend: true, legendrank: i, hoverinfo: "x+y+name",
      line: { color: colour, width: 2.4, dash: DASHES[i] } });
  });
  const points = { mode: "markers", hoverinfo: "x+y+name", x: seen.map((row) => row.time), y: seen.map((row) => row.values[name]), name: "recorded",
    marker: { color: style("--ink"), size: 6 } };
  traces.push({ ...points, mode: "lines+markers", line: { color: style("--quiet"), width: 1 } });
  if (later.length) {
    traces.push({ ...points, x: later.map((row) => now + row.time), y: later.map((row) => row.values[name]),
      name: "what came later", marker: { color: style("--ground"), size: 7, line: { width: 1.5, color: style("--ink") } } });
  }
  const lanes = given(from);
  const begin = Math.max(from, seen[0]?.time ?? from);
  const share = lanes.names.length ? Math.min(0.06 * lanes.names.length, 0.4) : 0; // of the picture's height
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"), linecolor: style("--line") };
  const variable = state.card.learned.outcomes.find((one) => one.name === name);
  picture = { data: [...traces, ...lanes.traces], layout: {
    margin: { l: 60, r: 10, t: 8, b: 40 }, paper_bgcolor: style("--ground"), plot_bgcolor: style("--ground"),
    font: { color: style("--ink"), size: 12 }, hovermode: "closest",
    shapes: [{ type: "line", x0: now, x1: now, yref: "paper", y0: 0, y1: 1, line: { color: style("--quiet"), width: 1, dash: "dot" } }],
    annotations: [{ x: now, yref: "paper", y: 1, text: "now", showarrow: false, xanchor: "left", font: { color: style("--quiet") } }],
    xaxis: { ...axis, anchor: share ? "y2" : "y", title: { text: `${state.card.learned.time_unit}s since time zero` }, range: [begin - 0.02 * (now - begin), now + state.card.max_horizon * 1.03] },
    yaxis: { ...axis, domain: [share && share + 0.03, 1], automargin: true, title: { standoff: 10, text: label(variable.unit ? `${name} (${variable.unit})` : name) } },
    yaxis2: { ...axis, domain: [0, share || 1], visible: share > 0, type: "category", categoryarray: [...lanes.names].reverse(), categoryorder: "array",
      range: [-0.5, lanes.names.length - 0.5], fixedrange: true, automargin: true, tickfont: { size: 11, color: style("--quiet") } },
    legend: { orientation: "h", traceorder: "normal", x: 0, y: 1.02, yanchor: "bottom", itemwidth: 30, font: { size: 10.5 }, itemclick: false, itemdoubleclick: false },
  } };
  // No bar of buttons: one of them would send the picture's numbers elsewhere.
  Plotly.react("chart", picture.data, picture.layout, { responsive: true, displayModeBar: false, plotlyServerURL: "" });
  drawCards();
}

// The picture to keep says whom it is about and what the plans change: it will be seen without the page.
function savePicture() {
  const { answer, about } = state;
  const last = answer.elapsed.length - 1;
  const said = state.plans.filter((one) => answer.changes[one.name]).map((one) => {
    const { mean, lower, upper, probability_of_benefit: benefit } = answer.changes[one.name];
    const how = `${signed(mean[last])} (95%: ${signed(lower[last])} to ${signed(upper[last])})`;
    return `${one.name} against ${answer.versus} after ${after(answer.elapsed[last])}: ${how}${benefit ? `, probability of benefit ${percent(benefit[last])}` : ""}`;
  });
  const lines = [...said, answer.label, state.card.notice];
  const note = { text: lines.map(label).join("<br>"), showarrow: false, xref: "paper", yref: "paper", x: 0, y: 0, yshift: -62, xanchor: "left",
    yanchor: "top", align: "left", font: { size: 11, color: style("--quiet") } };
  const layout = { ...picture.layout, title: { text: label(`${about.who}, now at ${after(about.now)}`), x: 0.01, y: 0.99, yanchor: "top", pad: { t: 10 }, font: { size: 15 } },
    annotations: [...picture.layout.annotations, note], margin: { l: 60, r: 20, t: 90, b: 76 + 16 * lines.length } };
  return Plotly.downloadImage({ data: picture.data, layout }, { format: "png", scale: 2, width: 1000, height: 600, filename: "comparison" });
}

// What was given, below the course, and what the plan in hand would give: a line per treatment.
function given(from) {
  const { known, now, plans } = state.about;
  const one = plans.find(({ name }) => name === plan().name) ?? { doses: [], infusions: [], keeps: false };
  const past = known.treatments.filter((event) => (event.dose !== null ? event.start : Math.min(event.stop ?? now, now)) >= from);
  const asked = [...one.doses.map((dose) => ({ ...dose, start: now + dose.time })),
    ...one.infusions.map((infusion) => ({ ...infusion, dose: null, start: now + infusion.start, stop: infusion.stop === null ? null : now + infusion.stop }))];
  const going = kept(one, known).map((treatment) => ({ treatment, dose: null, rate: null, start: now, stop: null }));
  const planned = [...asked, ...going].filter((event) => event.start < now + state.card.max_horizon);
  const names = state.card.learned.treatments.map((one) => one.name).filter((name) => [...past, ...planned].some((event) => event.treatment === name));
  const lane = (events, name, colour, first, last) => {
    const { unit } = usual(name);
    const own = events.filter((one) => one.treatment === name);
    const [x, text] = [[], []];
    for (const event of own) {
      const amount = event.dose ?? event.rate;
      const said = label(amount === null ? `${name} goes on` : `${name} ${number(amount)} ${unit ?? ""}`);
      if (event.dose !== null) x.push(event.start, null);
      else x.push(Math.max(event.start, first), Math.min(event.stop ?? last, last), null);
      text.push(...Array(event.dose !== null ? 2 : 3).fill(said));
    }
    const doses = own.every((event) => event.dose !== null);
    return { x, y: x.map((time) => (time === null ? null : label(name))), text, yaxis: "y2", mode: doses ? "markers" : "lines+markers", hoverinfo: "text+x",
      showlegend: false, line: { width: 6, color: colour }, marker: { size: doses ? 9 : 6, symbol: doses ? "triangle-up" : "line-ns", color: colour } };
  };
  const [quiet, strong] = [style("--quiet"), style(COLOURS[state.active])];
  const traces = names.flatMap((name) => [lane(past, name, quiet, from, now), lane(planned, name, strong, now, now + state.card.max_horizon)]);
  return { names: names.map(label), traces: traces.filter((trace) => trace.x.length) };
}

function drawCards() {
  const { answer, card } = state;
  const shown = card.horizons.map((horizon) => answer.elapsed.findIndex((time) => Math.abs(time - horizon) < 1e-9 * card.max_horizon));
  const when = (k) => ({ text: `+${number(answer.elapsed[k])}` });
  const times = `${card.learned.time_unit}s`;
  const told = (values) => shown.map((k) => values[k]);
  const outlooks = Object.values(answer.outlooks);
  const power = powerOf(outlooks.flatMap((one) => [one.median, one.bands.at(-1).upper].flatMap(told)));
  const unit = card.learned.outcomes.find((one) => one.name === answer.outcome).unit ?? "";
  const measure = `${power ? `× 10${raised(power)} ` : ""}${unit}`.trim();
  at("label").textContent = `Numbers are: ${answer.label}.`;
  const cards = state.plans.filter((one) => answer.outlooks[one.name]).map((one) => {
    const outlook = answer.outlooks[one.name];
    const widest = outlook.bands.at(-1);
    const course = scaled(power, told(outlook.median));
    const [ofModel, ofOutcome] = [outlook.model_uncertainty, outlook.outcome_uncertainty].map((values) => scaled(power, told(values), 2));
    const parts = [table([times, "median", "95% of outcomes", "± model", "± outcome"], shown.map((k) => [when(k), course(outlook.median[k]),
      range(course, widest.lower[k], widest.upper[k]), ofModel(outlook.model_uncertainty[k]), ofOutcome(outlook.outcome_uncertainty[k])]))];
    const change = answer.changes[one.name];
    if (change) {
      const benefit = change.probability_of_benefit;
      const much = scaled(power, [...told(change.mean), ...told(change.lower), ...told(change.upper)], 3, true);
      parts.push(element("h4", { textContent: `effect vs ${answer.versus}` }), table([times, "mean", "95%", ...(benefit ? ["P(benefit)"] : [])], shown.map((k) => [when(k), much(change.mean[k]),
        range(much, change.lower[k], change.upper[k]), ...(benefit ? [{ text: percent(benefit[k]), value: benefit[k] }] : [])])));
    }
    const place = state.plans.indexOf(one);
    const head = element("h3", {}, element("span", {}, sample(place), one.name), element("span", { className: "measure", textContent: measure }));
    const box = element("section", { className: "card", id: `card-${place}` }, head, ...parts, ...support(outlook));
    box.style.setProperty("--plan", `var(${COLOURS[place]})`);
    return box;
  });
  at("cards").replaceChildren(...(cards.length > 1 ? [glance(power, measure, shown.at(-1))] : []), ...cards);
  const notes = [...new Set([...state.notes, ...answer.warnings])];
  at("notes").hidden = notes.length === 0;
  at("notes").replaceChildren(...notes.map((text) => element("li", { textContent: text })));
}

// A plan's line as in the picture: who does not see its colour sees its dashes.
function sample(place) {
  const svg = shape("svg", { class: "sample", viewBox: "0 0 24 8", "aria-hidden": "true" });
  svg.append(shape("line", { x1: 0, y1: 4, x2: 24, y2: 4, stroke: `var(${COLOURS[place]})`, "stroke-width": 3, "stroke-dasharray": SAMPLES[place] }));
  return svg;
}

// All plans in one table, at the longest horizon.
function glance(power, measure, last) {
  const { answer } = state;
  const shown = state.plans.filter((one) => answer.outlooks[one.name]);
  const median = scaled(power, shown.map((one) => answer.outlooks[one.name].median[last]));
  const changes = shown.map((one) => answer.changes[one.name]);
  const much = scaled(power, changes.map((one) => one?.mean[last] ?? 0), 3, true);
  const share = (value) => (value === undefined ? { text: "" } : { text: percent(value), value });
  const best = answer.probability_best;
  const rows = shown.map((one, i) => {
    const { behind, defer, median: values } = answer.outlooks[one.name];
    const fewest = behind === null ? null : Math.min(...behind.windows);
    return [{ text: one.name, title: one.name }, median(values[last]), changes[i] ? much(changes[i].mean[last]) : { text: "–" },
      ...(best ? [share(changes[i]?.probability_of_benefit[last]), share(best[one.name][last])] : []),
      { text: fewest === null ? "–" : `${fewest === 0 ? "never" : fewest.toLocaleString("en")}${defer ? " ⚠" : ""}` }];
  });
  const made = table(["plan", "median", "effect", ...(best ? ["benefit", "best"] : []), "seen"], rows);
  const titles = { effect: `What the plan changes in expectation against ${answer.versus}`, benefit: `Probability that the expected outcome is better than under ${answer.versus}`,
    best: "Probability that the expected outcome is the best of all", seen: "Comparable training windows; ⚠: do not lean on this forecast" };
  for (const head of made.querySelectorAll("th")) head.title = titles[head.textContent] ?? "";
  [...made.rows].slice(1).forEach((row, i) => row.style.setProperty("--plan", `var(${COLOURS[state.plans.indexOf(shown[i])]})`));
  const heading = element("h3", {}, element("span", { textContent: `After ${after(answer.elapsed[last])}, against ${answer.versus}` }), element("span", { className: "measure", textContent: measure }));
  return element("section", { id: "glance" }, heading, made);
}

function table(heads, rows) {
  const cell = ({ text, value, title = "" }) => {
    const made = element("td", { textContent: text, title });
    if (typeof value === "number") Object.assign(made, { title: String(value) }).dataset.value = value;
    return made;
  };
  return element("table", {}, element("tr", {}, ...heads.map((text) => element("th", { textContent: text }))),
    ...rows.map((row) => element("tr", {}, ...row.map(cell))));
}

function support(outlook) {
  const { behind } = outlook;
  if (behind === null) return [];
  const fewest = Math.min(...behind.windows);
  const many = fewest === 0 ? "never observed" : `${fewest.toLocaleString("en")} comparable training window${fewest === 1 ? "" : "s"}`;
  const parts = [element("p", { className: "quiet support", textContent: outlook.defer ? many : `${many}, no caution` })];
  if (outlook.defer) {
    parts.push(element("p", { className: "defer", textContent: "Do not lean on this forecast; let somebody else look:" }),
      element("ul", { className: "defer" }, ...behind.cautions.map((text) => element("li", { textContent: text }))));
  }
  return parts;
}

// --- plans

const plan = () => state.plans[state.active];
const step = () => state.card.max_horizon / STEPS;
const onStep = (time) => Math.min(Math.max(Math.round(time / step()), 0), STEPS - 1) * step();
const tidy = (value) => Number(value.toPrecision(10));

// An infusion of a plan takes the place of one that runs now.
const replaced = (one) => [...new Set(one.infusions.map((infusion) => infusion.treatment))];
const kept = (one, known) => (one.keeps ? running(known).filter((treatment) => !replaced(one).includes(treatment)) : []);

// Of the plan in hand, for whoever has been chosen.
function keptNow() {
  const whole = state.history ?? state.record?.history;
  return whole ? kept(plan(), asKnown(whole, state.now)) : [];
}

// What is being given now.
function running({ treatments }) {
  return [...new Set(treatments.filter(({ dose, stop }) => dose === null && stop === null).map(({ treatment }) => treatment))];
}

function usual(treatment) {
  return state.card.learned.treatments.find((one) => one.name === treatment);
}

function put(one, treatment, time) {
  const known = usual(treatment);
  if (known.dose !== null || known.rate === null) one.doses.push({ treatment, time: tidy(time), dose: known.dose?.usual ?? 1 });
  else one.infusions.push({ treatment, start: tidy(time), stop: null, rate: known.rate.usual });
}

function add(treatment, time) {
  put(plan(), treatment, time);
  plansChanged();
}

function plansChanged() {
  drawPlans();
  changed();
}

function drawAdders() {
  at("adders").replaceChildren(...state.card.learned.treatments.map((treatment) => {
    const button = element("button", { type: "button", textContent: `Add ${treatment.name} now` });
    button.addEventListener("click", () => add(treatment.name, 0));
    return button;
  }));
}

function drawPlans() {
  const tabs = state.plans.map((one, i) => {
    const tab = element("button", { type: "button", role: "tab" }, sample(i), one.name);
    tab.setAttribute("aria-selected", String(i === state.active));
    tab.tabIndex = i === state.active ? 0 : -1;
    tab.addEventListener("click", () => activate(i));
    tab.addEventListener("keydown", (event) => {
      const next = i + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0);
      if (next === i || !state.plans[next]) return;
      event.preventDefault();
      activate(next);
      at("tabs").querySelectorAll("[role=tab]")[next].focus();
    });
    return tab;
  });
  const name = element("input", { value: plan().name, maxLength: MOST_SIGNS, title: "Name of this plan", id: "plan-name" });
  name.addEventListener("change", () => {
    const wanted = name.value.trim();
    if (wanted && !state.plans.some((one, i) => i !== state.active && one.name === wanted)) plan().name = wanted;
    setTimeout(plansChanged); // first the focus goes where it wants to
  });
  const extra = [element("label", {}, "name ", name)];
  if (state.plans.length < MOST_PLANS) {
    extra.push(button("Add plan", () => {
      const free = ["A", "B", "C"].find((letter) => state.plans.every((one) => one.name !== letter)) ?? `Plan ${state.plans.length + 1}`;
      state.plans.push({ ...structuredClone(plan()), name: free });
      state.active = state.plans.length - 1;
      plansChanged();
    }, "another"));
  }
  if (state.plans.length > 1) {
    extra.push(button("Remove plan", () => {
      state.plans.splice(state.active, 1);
      state.active = Math.min(state.active, state.plans.length - 1);
      plansChanged();
    }, "remove"));
  }
  keepingFocus("tabs", () => at("tabs").replaceChildren(...tabs, ...extra));
  keepingFocus("timeline", drawTimeline);
  keepingFocus("events", drawEvents);
}

// What is drawn anew takes the place of what had the focus.
function keepingFocus(id, draw) {
  const those = () => [...at(id).querySelectorAll("button, input, .grip")];
  const place = those().indexOf(document.activeElement);
  draw();
  if (place >= 0) those()[Math.min(place, those().length - 1)]?.focus();
}

function activate(i) {
  state.active = i;
  drawPlans();
  if (state.answer) drawAnswer();
}

const LANE = 30;

function drawTimeline() {
  const svg = at("timeline");
  const treatments = state.card.learned.treatments;
  const width = Math.max(svg.clientWidth, 400);
  const height = LANE * treatments.length + 22;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.height = `${height}px`;
  const longest = Math.max(...treatments.flatMap((one) => [one.name.length, 0.85 * (one.unit ?? "").length]));
  const left = Math.min(Math.max(7 * longest, 60), 0.3 * width) + 26;
  const x = (time) => left + (time / state.card.max_horizon) * (width - left - 14);
  const timeOf = (event) => {
    const box = svg.getBoundingClientRect();
    return (((event.clientX - box.left) / box.width) * width - left) / (width - left - 14) * state.card.max_horizon;
  };
  const parts = [];
  treatments.forEach((treatment, i) => {
    const lane = shape("rect", { class: "lane", x: left - 13, y: i * LANE + 2, width: width - left, height: LANE - 5, rx: 4 });
    lane.dataset.treatment = treatment.name;
    lane.addEventListener("click", (event) => add(treatment.name, onStep(timeOf(event))));
    const most = Math.floor((left - 26) / 7);
    const name = shape("text", { x: 0, y: i * LANE + (treatment.unit ? 13 : 19) }, treatment.name.length > most ? `${treatment.name.slice(0, most - 1)}…` : treatment.name);
    name.append(shape("title", {}, treatment.name));
    parts.push(lane, name, shape("text", { class: "tick", x: 0, y: i * LANE + 25 }, treatment.unit ?? ""));
  });
  const laneOf = (name) => treatments.findIndex((one) => one.name === name) * LANE + LANE / 2;
  const colour = `var(${COLOURS[state.active]})`;
  for (const name of keptNow()) {
    parts.push(shape("rect", { class: "kept", x: x(0), y: laneOf(name) - 6, width: width - left - 14, height: 11, fill: colour, opacity: 0.3, "pointer-events": "none" }));
  }
  for (const infusion of plan().infusions) {
    const end = infusion.stop ?? state.card.max_horizon;
    parts.push(shape("rect", { x: x(infusion.start), y: laneOf(infusion.treatment) - 6, width: Math.max(x(Math.min(end, state.card.max_horizon)) - x(infusion.start), 2), height: 11, fill: colour, opacity: 0.6, "pointer-events": "none" }));
    parts.push(grip(infusion, "start", infusion.start, "rate", x, laneOf(infusion.treatment), colour, timeOf));
    const [from, to] = [x(infusion.start), x(Math.min(end, state.card.max_horizon))];
    if (to - from > 60) parts.push(shape("text", { class: "rate", x: (from + to) / 2, y: laneOf(infusion.treatment) + 3 }, number(infusion.rate)));
    parts.push(grip(infusion, "stop", Math.min(end, state.card.max_horizon), "rate", x, laneOf(infusion.treatment), colour, timeOf));
  }
  for (const dose of plan().doses) {
    if (dose.time > state.card.max_horizon) continue;
    parts.push(grip(dose, "time", dose.time, "dose", x, laneOf(dose.treatment), colour, timeOf));
    parts.push(shape("text", { class: "amount", x: x(dose.time), y: laneOf(dose.treatment) + 3.5 }, number(dose.dose)));
  }
  for (let k = 0; k <= 5; k += 1) {
    const time = (state.card.max_horizon * k) / 5;
    parts.push(shape("text", { class: "tick", x: x(time), y: height - 6, "text-anchor": "middle" }, k === 0 ? "now" : `+${number(time)}`));
  }
  svg.replaceChildren(...parts);
}

// A dose, or an end of an infusion: dragged, or moved by keys.
function grip(event, part, time, amount, x, y, colour, timeOf) {
  const half = part === "time" ? [Math.max(11, 3.2 * number(event[amount]).length + 5), 11] : [7, 7]; // of width and height
  const box = { x: x(time) - half[0], y: y - half[1], width: 2 * half[0], height: 2 * half[1], rx: half[1] };
  const made = shape("rect", { class: "grip", ...box, fill: colour, tabindex: 0, role: "slider",
    "aria-label": `${event.treatment} ${amount} ${number(event[amount])}, ${part}`, "aria-valuenow": time, "aria-valuemin": 0, "aria-valuemax": state.card.max_horizon });
  const move = (to) => {
    const wanted = tidy(onStep(to));
    if (part === "stop") {
      const latest = to >= state.card.max_horizon - step() / 2;
      event.stop = latest ? null : Math.max(wanted, tidy(event.start + step()));
    } else if (part === "start") {
      event.start = Math.min(wanted, (event.stop ?? state.card.max_horizon) - step());
    } else event.time = wanted;
  };
  made.addEventListener("pointerdown", (down) => {
    down.preventDefault();
    made.focus();
    const [svg, done] = [at("timeline"), new AbortController()]; // it is itself drawn anew with each move
    svg.setPointerCapture(down.pointerId);
    svg.addEventListener("pointermove", (moved) => { move(timeOf(moved)); plansChanged(); }, { signal: done.signal });
    for (const end of ["pointerup", "pointercancel"]) svg.addEventListener(end, () => done.abort(), { signal: done.signal });
  });
  made.addEventListener("keydown", (key) => {
    const moves = { ArrowLeft: -step(), ArrowRight: step() };
    const here = part === "stop" ? event.stop ?? state.card.max_horizon : event[part];
    if (key.key in moves) move(here + moves[key.key]);
    else if (key.key === "+" || key.key === "-") event[amount] = tidy(event[amount] * (key.key === "+" ? 1.1 : 1 / 1.1));
    else if (key.key === "Delete" || key.key === "Backspace") removeEvent(event);
    else return;
    key.preventDefault();
    plansChanged();
  });
  return made;
}

function removeEvent(event) {
  plan().doses = plan().doses.filter((one) => one !== event);
  plan().infusions = plan().infusions.filter((one) => one !== event);
}

function drawEvents() {
  const body = at("events").tBodies[0];
  const cell = (content) => element("td", {}, ...(content === null ? [] : [content]));
  const numeric = (event, key, value, allowEmpty, title) => {
    const input = element("input", { type: "number", step: "any", min: 0, value: value === null ? "" : value, title, placeholder: allowEmpty ? "end" : "" });
    const kind = plan().doses.includes(event) ? "doses" : "infusions";
    input.dataset.field = `${kind}.${plan()[kind].indexOf(event)}.${key}`;
    input.addEventListener("change", () => {
      const typed = input.value === "" ? null : Number(input.value);
      if (typed === null ? allowEmpty : Number.isFinite(typed)) event[key] = typed;
      setTimeout(plansChanged);
    });
    return input;
  };
  const doses = plan().doses.map((dose) => {
    const every = element("input", { type: "number", step: "any", min: 0, title: "Repeat every", placeholder: "–" });
    const times = element("input", { type: "number", step: 1, min: 2, max: 50, title: "How many doses in all", placeholder: "–" });
    const repeat = button("Repeat", () => {
      const [gap, count] = [Number(every.value), Math.min(Math.round(Number(times.value)), 50)];
      if (!(gap > 0 && count > 1)) return;
      for (let k = 1; k < count; k += 1) plan().doses.push({ ...dose, time: tidy(dose.time + k * gap) });
      plansChanged();
    });
    const row = element("tr", {}, cell(document.createTextNode(dose.treatment)), cell(numeric(dose, "time", dose.time, false, "Time from now")), cell(null),
      cell(numeric(dose, "dose", dose.dose, false, "Dose")), cell(every), cell(times), cell(repeat));
    row.lastChild.append(" ", button("Remove", () => { removeEvent(dose); plansChanged(); }));
    return row;
  });
  const infusions = plan().infusions.map((infusion) => element("tr", {}, cell(document.createTextNode(infusion.treatment)),
    cell(numeric(infusion, "start", infusion.start, false, "Start from now")), cell(numeric(infusion, "stop", infusion.stop, true, "Stop; empty: goes on")),
    cell(numeric(infusion, "rate", infusion.rate, false, "Rate")), cell(null), cell(null), cell(button("Remove", () => { removeEvent(infusion); plansChanged(); }))));
  const runs = keptNow().join(", ") || "nothing does";
  const going = plan().keeps ? [element("tr", {}, element("td", { colSpan: 7, textContent: `What runs now goes on: ${runs}.` }))] : [];
  const none = doses.length + infusions.length + going.length ? [] : [element("tr", {}, element("td", { colSpan: 7, className: "quiet", textContent: "Nothing is given, and what runs now ends." }))];
  body.replaceChildren(...going, ...doses, ...infusions, ...none);
  markFlaws();
}

function preset(kind) {
  const one = plan();
  Object.assign(one, { doses: [], infusions: [], keeps: kind === "continued" });
  if (kind === "followed" && state.record) {
    one.doses = state.record.followed.doses.map(({ treatment, time, dose }) => ({ treatment, time, dose }));
    one.infusions = state.record.followed.infusions.map(({ treatment, start, stop, rate }) => ({ treatment, start, stop, rate }));
  }
  plansChanged();
}

// --- keeping and sharing: a link holds the plans and which patient, never a record

function keepLink() {
  const { patient, now, plans, better, outcome } = state;
  const text = JSON.stringify({ patient, now, plans, better, outcome });
  history.replaceState(null, "", `#${encodeURIComponent(text)}`);
}

// What a link holds is not trusted: only numbers and names of the right kind are taken.
function plansOf(held) {
  const some = (value) => (Array.isArray(value) ? value : []);
  const isTime = (value) => Number.isFinite(value) && value >= 0;
  const known = (one) => usual(one?.treatment) !== undefined;
  const names = new Set();
  return some(held?.plans).slice(0, MOST_PLANS).map((one, i) => {
    const asked = String(one?.name ?? "").trim().slice(0, MOST_SIGNS);
    const name = asked === "" || names.has(asked) ? `Plan ${i + 1}` : asked;
    names.add(name);
    const doses = some(one?.doses).filter((dose) => known(dose) && isTime(dose.time) && Number.isFinite(dose.dose));
    const infusions = some(one?.infusions).filter((infusion) => known(infusion) && isTime(infusion.start)
      && (infusion.stop === null || isTime(infusion.stop)) && Number.isFinite(infusion.rate));
    return { name, keeps: Boolean(one?.keeps),
      doses: doses.map(({ treatment, time, dose }) => ({ treatment, time, dose })),
      infusions: infusions.map(({ treatment, start: from, stop, rate }) => ({ treatment, start: from, stop, rate })) };
  });
}

async function openLink() {
  let [held, unread] = [null, false];
  try { held = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "null"); } catch { unread = true; }
  const plans = plansOf(held);
  if (plans.length) Object.assign(state, { plans, active: 0 });
  state.better = ["lower", "higher"].includes(held?.better) ? held.better : "";
  at("better").value = state.better;
  state.outcome = state.card.outcomes.includes(held?.outcome) ? held.outcome : null;
  at("outcome").value = state.outcome ?? state.card.outcomes[0];
  drawPlans();
  if (typeof held?.patient === "string") await choose(held.patient, typeof held.now === "number" ? held.now : null);
  else if (plans.length && state.history !== null) changed();
  else if (plans.length) tell(new Error("The link holds the plans and no record. Give the patient's record again, or choose somebody."));
  else if (state.patients.length) await choose(state.patients[0].patient);
  else at("who").textContent = "Give the record of a patient";
  if (unread) state.notes = ["The link cannot be read, so it is left aside."];
}

function save(name, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: name });
  link.click();
  URL.revokeObjectURL(link.href);
}

// --- small things

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  if (properties.role) made.setAttribute("role", properties.role);
  made.append(...children);
  return made;
}

function button(text, action, id = "") {
  const made = element("button", { type: "button", textContent: text });
  if (id) made.id = id;
  made.addEventListener("click", action);
  return made;
}

function shape(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Numbers of one table share their power of ten and their decimals, so that they can be compared at a glance.

const largest = (values) => Math.max(...values.map((value) => Math.abs(value ?? 0)));

function powerOf(values) {
  const most = largest(values);
  return most > 0 && (most < 0.01 || most >= 1e5) ? 3 * Math.floor(Math.log10(most) / 3) : 0;
}

function scaled(power, values, digits = 3, withSign = false) {
  const most = largest(values) / 10 ** power;
  const decimals = most > 0 ? Math.min(Math.max(digits - 1 - Math.floor(Math.log10(most)), 0), 5) : 0;
  return (value) => {
    if (value === null) return { text: "–", value };
    const text = Math.abs(value / 10 ** power).toFixed(decimals);
    const isZero = Number(text) === 0;
    return { text: `${isZero ? "" : value < 0 ? "−" : withSign ? "+" : ""}${text}`, value };
  };
}

const range = (form, lower, upper) => ({ text: `${form(lower).text} to ${form(upper).text}` });
const raised = (power) => String(power).replaceAll(/[-\d]/g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]);
const after = (time) => `${number(time)} ${state.card.learned.time_unit}${time === 1 ? "" : "s"}`;

function number(value, digits = 3) {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(digits)));
}

const signed = (value) => (value > 0 ? `+${number(value)}` : number(value).replace("-", "−"));
const percent = (share) => (share < 0.01 ? "< 1%" : share > 0.99 ? "> 99%" : `${Math.round(100 * share)}%`); // of some hundred draws

function theme(name) {
  document.documentElement.dataset.theme = name;
  localStorage.setItem("theme", name);
  if (state.answer) drawAnswer();
}

at("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
at("search").addEventListener("input", () => listPatients().catch(tell));
at("sort").addEventListener("change", () => listPatients().catch(tell));
at("at").addEventListener("change", () => {
  const now = Number(at("at").value);
  if (at("at").value === "") at("at").value = state.now ?? ""; // nothing, or no number
  else if (state.patient !== null) choose(state.patient, now);
  else if (state.history !== null) { state.now = now; drawPlans(); changedAltogether(); }
});
at("better").addEventListener("change", () => { state.better = at("better").value; changed(); });
at("outcome").addEventListener("change", () => { state.outcome = at("outcome").value; changedAltogether(); });
at("presets").addEventListener("click", (event) => { if (event.target.dataset.preset) preset(event.target.dataset.preset); });
at("link").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
  } catch { // browsers refuse it without encryption
    tell(new Error("Copy the address of this page: it is the link."));
    return;
  }
  at("link").textContent = "Copied";
  setTimeout(() => { at("link").textContent = "Link"; }, 1500);
});
at("json").addEventListener("click", () => {
  const plans = Object.fromEntries(state.plans.map((one) => [one.name, { ...asPlan(one), time_unit: state.card.learned.time_unit }]));
  const answer = at("answers").ariaBusy === "true" ? null : state.answer; // never one about other plans
  save("comparison.json", JSON.stringify({ patient: state.patient, at: state.now, plans, answer }, null, 2));
});
at("png").addEventListener("click", () => { if (state.answer) savePicture().catch(tell); });
at("own").addEventListener("click", () => {
  const { learned } = state.card;
  const names = [...learned.outcomes, ...learned.covariates].map((one) => one.name);
  at("observations").placeholder = `${learned.time_column},${names.join(",")}\n0,…`;
  at("treatments").placeholder = "treatment,start,dose,rate,stop\n…";
  at("static").placeholder = learned.static.map((one) => one.name).join(",");
  at("dialog").showModal();
});
for (const field of document.querySelectorAll(".field")) {
  field.querySelector("input").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (file) field.querySelector("textarea").value = await file.text();
  });
}
at("use").addEventListener("click", async () => {
  for (const flaw of document.querySelectorAll(".flaw")) flaw.textContent = "";
  const tables = Object.fromEntries(["observations", "treatments", "static"].map((name) => [name, at(name).value]));
  try {
    useOwn(await ask("api/history", tables));
    at("dialog").close();
  } catch (error) {
    const flaws = error.problem?.errors?.length ? error.problem.errors : [{ field: "observations", message: error.message }];
    for (const { field, message } of flaws) {
      const box = document.querySelector(`.field[data-field="${CSS.escape(field)}"]`) ?? document.querySelector(".field");
      box.querySelector(".flaw").textContent = message;
    }
  }
});
addEventListener("hashchange", () => { if (state.card) openLink().catch(tell); }); // a link that was pasted into this very page
addEventListener("resize", () => { if (state.card) drawTimeline(); });

start().catch(tell);
