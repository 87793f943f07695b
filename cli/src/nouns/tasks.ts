import type { CliCommand } from "../command.ts";

export function addTasks(tasks: CliCommand): void {
  tasks
    .command("get <task>")
    .description("show a task, with its result once it is completed")
    .example("tasks get 1a.qN3vX0bqv1m2")
    .does(async ({ client, output }, id: string) =>
      output.show(await client.tasks.get(id), ["task_id", "type", "status", "result", "error", "finished_at"]),
    );
}
