// Deletion of the container or the table: what will be gone first, then the name to type.
import { admin, ask } from "./api.js";
import { bytes, count } from "./format.js";
import { showProblem, whileDisabled } from "./trouble.js";
import { confirmAction, toast } from "./ui.js";

export function mountDeletion(subject) {
  const button = document.getElementById("delete");
  button?.addEventListener("click", () => whileDisabled(button, () => remove(subject)));
}

async function remove(subject) {
  const problem = document.getElementById("delete-problem");
  showProblem(problem, null);
  try {
    const plan = await admin(subject.account, "plan/delete", subject.names);
    const [thing, things] = subject.isTable ? ["entity", "entities"] : ["item", "items"];
    const number = `${count(plan.items)} ${plan.items === 1 ? thing : things}`;
    const confirmed = await confirmAction({
      title: `Delete the ${subject.kind} ${subject.name}?`,
      lines: [`${number} with ${bytes(plan.bytes)} will be gone. This cannot be undone.`],
      action: `Delete ${subject.kind}`,
      typed: subject.name,
      isDanger: true,
    });
    if (!confirmed) return;
    await send(subject);
    toast("Deleted.");
    location.assign("/");
  } catch (error) {
    showProblem(problem, error);
  }
}

function send(subject) {
  return subject.isTable
    ? ask("DELETE", subject.account, "table", `Tables('${subject.name}')`)
    : ask("DELETE", subject.account, "nosql", subject.link);
}
