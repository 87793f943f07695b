import { Forbidden } from "@holdfast/sdk/errors.ts";
import type { ManagedService } from "@holdfast/sdk/responses.ts";
import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

export function addStatus(status: CliCommand): void {
  status
    .example("status")
    .example("status --output json")
    .does(async ({ client, output, settings }) => {
      const [me, services, files] = await Promise.all([
        client.me(),
        take(client.services.list()),
        // The files services of a caller that may not read them are left out.
        take(client.files.list()).catch((error: unknown) => {
          if (error instanceof Forbidden) return [];
          throw error;
        }),
      ]);
      output.show({
        url: settings.baseUrl,
        user: settings.username ?? me.id,
        organization: me.organization_id,
        services: countsOf(services),
        files_services: countsOf(files),
      });
    });
}

/** Number of services in each state. */
function countsOf(services: readonly ManagedService[]): Record<string, number> {
  const byState = Map.groupBy(services, ({ status }) => status);
  return Object.fromEntries([...byState].map(([state, members]) => [state, members.length]));
}
