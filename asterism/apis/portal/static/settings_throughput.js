// Throughput: the present one, the consequences of another one before it is set, and the splits that it begins.
import { admin } from "./api.js";
import { count } from "./format.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { confirmAction, h, mayChange, setText, toast } from "./ui.js";
import { readOffer, replaceOffer } from "./settings_container.js";

const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

// The consequences of a plan in a sentence or two.
export function consequencesOf(plan) {
  if (!plan.allowed) return plan.reason;
  const { now, after } = plan.partitions;
  const each = `${count(plan.ru_per_partition.after)} RU/s each`;
  const splits = plan.splits > 0 ? ` This begins ${plural(plan.splits, "split")}.` : "";
  const merged =
    plan.ru_per_partition.after < plan.ru_per_partition.now && now > 1
      ? " Partitions are not merged by themselves when throughput is lowered."
      : "";
  const eachNow = count(plan.ru_per_partition.now);
  return `${plural(after, "partition")} (now ${count(now)}), ${each} (now ${eachNow}).${splits}${merged}`;
}

export function mountThroughput(subject) {
  const place = (id) => document.getElementById(`throughput-${id}`);
  const form = place("form");
  const input = place("ru");
  const button = place("save");
  const problem = place("problem");
  const card = { onSaved: () => {}, show };
  let offer = null;
  let plan = null;
  let isDirty = false;
  let lastPlanned = 0;

  async function showPlan() {
    const number = (lastPlanned += 1);
    button.disabled = true;
    plan = null;
    const ru = Number(input.value);
    if (!isDirty || ru === offer.ru) {
      setText(place("consequences"), "Change the number to see the consequences first.");
      return;
    }
    try {
      const names = offer.isShared ? { database: subject.database } : subject.names;
      const found = await admin(subject.account, "plan/throughput", {
        ...names,
        throughput: input.value,
        autoscale: String(offer.isAutoscale),
      });
      // A later number may have been answered first.
      if (number !== lastPlanned) return;
      plan = found;
      setText(place("consequences"), consequencesOf(plan));
      button.disabled = !plan.allowed;
    } catch (error) {
      if (number === lastPlanned) setText(place("consequences"), error.message);
    }
  }

  async function save() {
    if (plan === null || !plan.allowed) return;
    const ru = Number(input.value);
    const confirmed = await confirmAction({
      title: `Change throughput to ${count(ru)} RU/s?`,
      lines: [consequencesOf(plan)],
      action: "Change throughput",
    });
    if (!confirmed) return;
    showProblem(problem, null);
    try {
      await replaceOffer(subject, offer, ru);
      isDirty = false;
      toast("Throughput changed.");
      card.onSaved();
    } catch (error) {
      if (error.status === 412) await showStale();
      else showProblem(problem, error);
    }
  }

  // Somebody else changed the offer: its present figures replace the ones beside the visitor's number, which stays.
  async function showStale() {
    offer = await readOffer(subject, offer.stored.offerResourceId);
    const present = `Somebody else changed the throughput: it is ${count(offer.ru)} RU/s now.`;
    problem.textContent = `${present} Your number is kept; save again to set it.`;
    problem.hidden = false;
    await showPlan();
  }

  async function show(present, partitions) {
    const hasOffer = present !== null;
    setText(place("now"), describe(present, partitions, subject));
    if (hasOffer && !isDirty) {
      offer = present;
      if (Number(input.value) !== offer.ru) input.value = String(offer.ru);
      place("label").textContent = offer.isAutoscale ? "Highest RU/s (autoscale)" : "RU/s";
      if (plan !== null || place("consequences").textContent === "") await showPlan();
    }
    // After the offer is known, by which a number that the visitor types is judged.
    form.hidden = !hasOffer || !mayChange();
    await showJobs(subject, place("jobs"), hasOffer && present.isPending);
  }

  input.addEventListener("input", () => {
    isDirty = Number(input.value) !== offer.ru;
    showPlan();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    whileDisabled(button, save).then(showPlan);
  });
  return card;
}

function describe(offer, partitions, subject) {
  if (offer === null) return "The throughput of this container is not limited.";
  const amount = offer.isAutoscale ? `Autoscale up to ${count(offer.ru)} RU/s` : `${count(offer.ru)} RU/s, manual`;
  const number = partitions.partitions.length;
  if (offer.isShared) return `${amount}, shared by the containers of the database ${subject.database}.`;
  return `${amount}: ${plural(number, "partition")} with ${count(partitions.partitions[0].ru_share)} RU/s each.`;
}

// Splits and merges of this container, with their progress.
async function showJobs(subject, place, isPending) {
  const { jobs } = await admin(subject.account, "jobs");
  const own = jobs.filter(
    (job) => job.kind !== "index" && job.database === subject.database && job.container === subject.name,
  );
  const rows = own.map((job) =>
    h(
      "div",
      {},
      h("span.small", {}, `${job.kind} of partition ${job.ranges.join(" and ")}: ${job.step}`),
      h("progress", {
        max: 100,
        value: job.percent ?? undefined,
        "aria-label": `${job.kind} of partition ${job.ranges.join(" and ")}`,
      }),
    ),
  );
  if (isPending && rows.length === 0) rows.push(h("p.small", {}, "Splits for this throughput are about to begin."));
  // Nothing is put into an empty place: a screen reader would be told of it every time.
  if (rows.length || place.childElementCount) place.replaceChildren(...rows);
}
