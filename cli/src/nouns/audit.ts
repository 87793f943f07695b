import type { CliCommand } from "../command.ts";
import { take, integer, timeOrAge } from "../flag-values.ts";

const columns = ["time", "actor", "source", "action", "object_kind", "object_id", "result"];

interface AuditFlags {
  readonly actor?: string;
  readonly object?: string;
  readonly action?: string;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
}

export function addAudit(audit: CliCommand): void {
  audit
    .option("--actor <actor>", "only changes by this actor, such as user:anna or api_key:hfk_...")
    .option("--object <id>", "only changes of this object")
    .option("--action <action>", "only changes with this action, such as managed-service.create")
    .option("--since <time>", "only changes since this time: RFC 3339, a date, or an age such as 30m or 7d", timeOrAge)
    .option("--until <time>", "only changes before this time: RFC 3339, a date, or an age such as 30m or 7d", timeOrAge)
    .option("--limit <count>", "maximum number of entries", integer, 100)
    .example("audit --limit 20")
    .example("audit --actor user:anna --since 2026-01-31T00:00:00Z")
    .does(async ({ client, output }, { actor, object, action, since, until, limit }: AuditFlags) =>
      output.list(await take(client.auditLog({ actor, object, action, since, until }), limit), columns),
    );
}
