import type { CliCommand } from "../command.ts";
import { take } from "../flag-values.ts";

export function addStatus(status: CliCommand): void {
  status
    .example("status")
    .example("status --output json")
    .does(async ({ client, output, settings }) => {
      const [me, services] = await Promise.all([client.me(), take(client.services.list())]);
      const counts = Map.groupBy(services, (service) => service.status);
      output.show({
        url: settings.baseUrl,
        user: settings.username ?? me.id,
        organization: me.organization_id,
        services: Object.fromEntries([...counts].map(([state, members]) => [state, members.length])),
      });
    });
}
