// Dead letters that are sent again, and queues that are emptied: in steps, each a request, with a bar of progress.
import { count } from "./format.js";
import { send, subject } from "./messaging_api.js";
import { sentenceOf } from "./trouble.js";
import { confirmAction, h, toast } from "./ui.js";

const STEP = 100;

export async function resubmit({ queue, numbers = null, total }) {
  if (numbers === null && !total) return toast("There are no dead letters.");
  const amount = numbers === null ? `All ${count(total)}` : count(numbers.length);
  const confirmed = await confirmAction({
    title: "Send dead letters again",
    lines: [
      `${amount} dead letters are sent to ${targetText()}, without the reasons of their failure.`,
      "Each is removed when its copy is stored.",
    ],
    action: "Send again",
  });
  if (!confirmed) return;
  const bar = progressBar("Sending dead letters again", numbers?.length ?? total);
  let done = 0;
  let missing = 0;
  try {
    // Those that come back as dead letters meanwhile are left alone.
    while (done + missing < bar.total) {
      const place = done + missing;
      const chosen = numbers === null ? {} : { sequence_numbers: numbers.slice(place, place + STEP) };
      const reply = await send("messaging/resubmit", { queue, count: Math.min(STEP, bar.total - place), ...chosen });
      done += reply.resubmitted;
      missing += reply.missing.length;
      bar.show(done + missing);
      if (!reply.resubmitted && !reply.missing.length) break;
    }
    toast(`${count(done)} sent again${missing ? `; ${count(missing)} were taken by others meanwhile` : ""}.`);
  } catch (error) {
    toast(`${count(done)} sent again. ${sentenceOf(error)}`, { isProblem: true });
  } finally {
    bar.remove();
  }
}

function targetText() {
  const topic = subject.kind === "subscription" ? subject.path.split(/\/subscriptions\//i)[0] : null;
  return topic === null ? subject.path : `the topic ${topic}, so to every subscription whose rules match`;
}

export async function purge({ queue, total, noun }) {
  const confirmed = await confirmAction({
    title: `Remove all ${noun}`,
    lines: [`${count(total)} ${noun} of ${subject.path} are removed. This cannot be undone.`],
    action: "Remove all",
    typed: subject.path,
    isDanger: true,
  });
  if (!confirmed) return;
  const bar = progressBar(`Removing ${noun}`, total);
  let done = 0;
  try {
    for (;;) {
      const reply = await send("messaging/purge", { queue });
      done += reply.removed;
      bar.show(done);
      if (reply.is_done) break;
    }
    toast(`${count(done)} removed.`);
  } catch (error) {
    toast(`${count(done)} removed. ${sentenceOf(error)}`, { isProblem: true });
  } finally {
    bar.remove();
  }
}

function progressBar(label, total) {
  const bar = h("progress", { max: Math.max(1, total), "aria-label": label });
  const text = h("p", {}, `${label} …`);
  const shown = h("div.toast", {}, text, bar);
  document.getElementById("toasts").append(shown);
  return {
    total,
    show(done) {
      bar.value = done;
      text.textContent = `${label}: ${count(done)} of ${count(total)}`;
    },
    remove: () => shown.remove(),
  };
}
