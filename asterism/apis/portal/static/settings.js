// Settings: reads the container again every few seconds, and gives what it read to the cards of the page.
import { admin } from "./api.js";
import { showGone, showProblem } from "./trouble.js";
import { collection, poll } from "./ui.js";
import { mountDefinition } from "./settings_definition.js";
import { mountDeletion } from "./settings_deletion.js";
import { mountKey } from "./settings_key.js";
import { readContainer, readOffer } from "./settings_container.js";
import { showFacts, showTableFacts } from "./settings_facts.js";
import { mountThroughput } from "./settings_throughput.js";

const POLL_SECONDS = 2;
const subject = collection();
const content = document.getElementById("settings");
const problem = document.getElementById("settings-problem");
let isGone = false;

// Stop at a 404: what the page shows is gone, and asking again would not bring it back.
function untilGone(load) {
  return async () => {
    if (isGone) return;
    try {
      await load();
      showProblem(problem, null);
    } catch (error) {
      if (error.status !== 404) {
        // The banner says that the server does not answer.
        if (error.name !== "Unreachable") showProblem(problem, error);
        throw error;
      }
      isGone = true;
      showGone(content, subject.kind);
    }
  };
}

function mountContainer() {
  const throughput = mountThroughput(subject);
  const definition = mountDefinition(subject);
  const key = mountKey(subject);
  let saves = 0;

  async function read() {
    const before = saves;
    const container = await readContainer(subject);
    const [offer, partitions] = await Promise.all([
      readOffer(subject, container.rid),
      admin(subject.account, "partitions", { ...subject.names, details: "false" }),
    ]);
    // What was read before the visitor saved may be older than what the cards show now.
    return before === saves ? [container, offer, partitions] : read();
  }

  const load = untilGone(async () => {
    const [container, offer, partitions] = await read();
    definition.show(container);
    key.show(container, partitions);
    await throughput.show(offer, partitions);
    showFacts(container.definition, partitions);
    content.removeAttribute("aria-busy");
  });
  const refresh = poll(load, POLL_SECONDS);
  definition.onSaved = key.onSaved = throughput.onSaved = () => {
    saves += 1;
    refresh();
  };
}

function mountTable() {
  poll(
    untilGone(async () => {
      showTableFacts(await admin(subject.account, "partitions", { ...subject.names, details: "false" }));
      content.removeAttribute("aria-busy");
    }),
    POLL_SECONDS,
  );
}

mountDeletion(subject);
if (subject.isTable) mountTable();
else mountContainer();
