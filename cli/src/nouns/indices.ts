import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

const columns = ["name", "health", "documents", "size_bytes", "shards", "replicas"];

export function addIndices(indices: CliCommand): void {
  indices
    .command("list <service>")
    .description("indices of a service")
    .example("indices list logs")
    .does(async ({ client, output, serviceId }, service: string) =>
      output.list(await take(client.indices.list(await serviceId(service))), columns),
    );

  indices
    .command("delete <service> <index>")
    .description("delete an index with its documents")
    .option("--yes", "do not ask for confirmation")
    .example("indices delete logs orders")
    .does(async (context, service: string, name: string, { yes }: { yes?: boolean }) => {
      const id = await context.serviceId(service);
      await context.confirm(`Delete ${name} of ${service} with its documents?`, yes);
      await context.client.indices.delete(id, name);
      context.output.info(`${name} is deleted`);
    });
}
