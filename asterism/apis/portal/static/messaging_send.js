// The form that sends a message to a queue or a topic.
import { send } from "./messaging_api.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { toast } from "./ui.js";

const place = (id) => document.getElementById(`send-${id}`);
const FIELDS = { message_id: "id", subject: "subject", session_id: "session", partition_key: "key", correlation_id: "correlation" };

export function sendForm(afterwards) {
  const form = place("form");
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    whileDisabled(event.submitter, async () => {
      try {
        const reply = await send("messaging/send", { messages: [message()] });
        showProblem(place("problem"), null);
        toast(`Sent, with the number ${reply.sequence_numbers[0]}.`);
        afterwards();
      } catch (error) {
        showProblem(place("problem"), error);
      }
    });
  });
}

function message() {
  const isJson = place("json").checked;
  const given = { body: place("body").value, is_json: isJson, properties: properties(place("properties").value) };
  if (isJson) given.content_type = "application/json";
  for (const [name, id] of Object.entries(FIELDS)) if (place(id).value !== "") given[name] = place(id).value;
  const at = place("at").value;
  if (at !== "") given.scheduled_ms = new Date(at).getTime();
  return given;
}

// Numbers and truth values where a value is JSON of these, otherwise texts.
export function properties(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([^=]+)=(.*)$/.exec(line.trim()) ?? [];
      if (name === undefined) throw new Error(`“${line.trim()}” is no property: write NAME=VALUE.`);
      return [name.trim(), typed(value.trim())];
    }),
  );
}

function typed(text) {
  try {
    const value = JSON.parse(text);
    return ["number", "boolean"].includes(typeof value) ? value : text;
  } catch {
    return text;
  }
}
