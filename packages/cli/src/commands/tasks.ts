import { type Command, Option } from "commander";
import { wholeNumber } from "../options.ts";
import { addPlace } from "../place.ts";
import { STATUSES } from "../tasks/statuses.ts";

const work = () => import("../tasks/tasks.ts");

/** `tenon tasks list`, `show`, `cancel` and `retry`. */
export function addTasks(program: Command): void {
  const tasks = program
    .command("tasks")
    .description("tasks of servers: what waits, what runs, and what was given up on");
  addPlace(tasks.command("list").description("print tasks, newest first"))
    .option("--server <name>", "only tasks of this server")
    .addOption(new Option("--status <status>", "only tasks that stand so").choices(STATUSES))
    .option("--dead", "only those given up on: they failed until their attempts were used up")
    .option("-n, --lines <count>", "at most so many", wholeNumber(1, 10_000), 50)
    .option("--json", "a line of JSON each, with everything that is kept but the call")
    .addHelpText(
      "after",
      `
Examples:
  tenon tasks list --data .tenon
  tenon tasks list --dead --json | jq -r .id`,
    )
    .action(async (flags) => (await work()).list(flags));
  addPlace(tasks.command("show <id>").description("print everything that is kept of a task"))
    .option("--json", "as JSON")
    .action(async (id, flags) => (await work()).show(id, flags));
  addPlace(tasks.command("cancel <id>").description("end a task; whoever runs it is told to stop")).action(
    async (id, flags) => (await work()).cancel(id, flags),
  );
  addPlace(
    tasks.command("retry <id>").description("set a task going again that was given up on, from its last finished step"),
  ).action(async (id, flags) => (await work()).retry(id, flags));
}
