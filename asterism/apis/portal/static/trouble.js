// Words for trouble, the same on every page: each says what happened and what to do.
import { h } from "./ui.js";

// The sentence of an error; of a throttled request with the time after which to try again.
export function sentenceOf(error) {
  if (error.name === "Unreachable") return "The server does not answer. Nothing here is lost; try again in a moment.";
  if (error.status !== 429) return error.message;
  // The data doors say it in a header, the operator's door in its reply.
  const inReply = 1000 * (error.reply?.retry_after_seconds ?? 1);
  const milliseconds = Number(error.headers?.get("x-ms-retry-after-ms") ?? inReply);
  const seconds = Math.max(1, Math.ceil(milliseconds / 1000));
  return `The provisioned throughput is used up (429). Try again in ${seconds} second${seconds === 1 ? "" : "s"}.`;
}

// Show an error in an element with role="alert"; null hides it.
export function showProblem(place, error) {
  place.textContent = error === null ? "" : sentenceOf(error);
  place.hidden = error === null;
}

// Show in the place of the page's content that its container or table was deleted meanwhile.
export function showGone(content, noun) {
  content.replaceWith(
    h(
      "section.card.narrow",
      {},
      h("h2", {}, `This ${noun} no longer exists.`),
      h("p", { role: "alert" }, `Somebody has deleted the ${noun} while this page showed it.`),
      h("p", {}, h("a", { href: "/" }, "Back to the first page")),
    ),
  );
}

// Run `act` with its button disabled, so that a second click does not send it twice.
export async function whileDisabled(button, act) {
  button.disabled = true;
  try {
    return await act();
  } finally {
    button.disabled = false;
  }
}
