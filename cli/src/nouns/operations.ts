import type { CliCommand } from "../command.ts";
import { seconds } from "../flag-values.ts";
import { waitForOperation } from "./operation-wait.ts";

const fields = ["id", "type", "status", "step", "created_at", "finished_at", "error", "warnings"];

export function addOperations(operations: CliCommand): void {
  operations
    .command("get <operation>")
    .description("show an operation, also after its end")
    .example("operations get 019aa3d2-6cf6-7bd1-9f53-6ec1a1b7f1a4")
    .does(async ({ client, output }, id: string) => output.show(await client.operations.get(id), fields));

  operations
    .command("wait <operation>")
    .description("wait until an operation is completed; fails if the operation fails")
    .option("--timeout <duration>", "give up after this time, such as 90s or 30m", seconds, 900)
    .example("operations wait 019aa3d2-6cf6-7bd1-9f53-6ec1a1b7f1a4")
    .does(async (context, id: string, { timeout }: { timeout: number }) =>
      context.output.show(await waitForOperation(context, id, id, timeout), fields),
    );
}
