import { adminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { addAdminFailover } from "./admin-failover.ts";
import { addAdminArchives } from "./admin-archives.ts";
import { addAdminHosts } from "./admin-hosts.ts";
import { addAdminInference } from "./admin-inference.ts";
import { addAgents } from "./admin-agents.ts";
import { addAdminLists } from "./admin-lists.ts";
import { addAdminMaintenance } from "./admin-maintenance.ts";
import { addAdminReconciles } from "./admin-reconciles.ts";
import { addAuthority } from "./admin-authority.ts";
import { addOperators } from "./admin-operators.ts";
import { addAdminKeys, addAdminOrganizations } from "./admin-organizations.ts";
import { addRecovery } from "./admin-recovery.ts";

/** Commands that call holdfast.admin.v1, for platform operators. */
export function addAdmin(admin: CliCommand): void {
  addAdminLists(admin);
  addAdminReconciles(admin);

  admin
    .command("orphans")
    .description("list machines without an owner; with --sweep, stop or delete them")
    .option("--sweep", "stop machines with data and delete them after 7 days; delete the others")
    .option("--yes", "do not ask for confirmation")
    .example("admin orphans")
    .example("admin orphans --sweep")
    .does(async ({ passwordClient, output, confirm }, { sweep, yes }: { sweep?: boolean; yes?: boolean }) => {
      if (sweep === true) await confirm("Stop or delete all machines without an owner?", yes);
      const orphans = { service: "FleetService", method: "SweepOrphans", plural: "orphans" };
      const found = await adminList(await passwordClient(), orphans, { dryRun: sweep !== true }).toArray();
      output.list(found, ["machineId", "hasData", "action", "keptUntil"]);
    });

  admin
    .command("drain <controller>")
    .description("drain a controller: hand over its shards and agent sessions")
    .example("admin drain 019a...")
    .does(async ({ passwordClient, output }, controllerId: string) => {
      await (await passwordClient()).admin("ControlService", "DrainController", { controllerId });
      output.info(`${controllerId} hands over its shards`);
    });

  admin
    .command("pause-automation <kind>")
    .alias("hold")
    .description("pause automation: deletion (of expired services), maintenance (in windows) or failover")
    .requiredOption("--reason <reason>", "reason, which operators see")
    .example("admin pause-automation failover --reason 'the switches are replaced'")
    .does(async ({ passwordClient, output }, kind: string, { reason }: { reason: string }) => {
      await (await passwordClient()).admin("ControlService", "PlaceHold", { kind, reason });
      output.info(`${kind} is paused; \`holdfast admin resume-automation ${kind}\` resumes it`);
    });

  admin
    .command("resume-automation <kind>")
    .alias("release-hold")
    .description("resume paused automation")
    .example("admin resume-automation restored")
    .does(async ({ passwordClient, output }, kind: string) => {
      await (await passwordClient()).admin("ControlService", "ReleaseHold", { kind });
      output.info(`${kind} is resumed`);
    });

  admin
    .command("free-etcd")
    .description("compact and defragment etcd, and clear its NOSPACE alarm, which refuses all writes")
    .example("admin free-etcd")
    .does(async ({ passwordClient, output }) => {
      // Defragmenting a member of etcd's maximum size takes a minute.
      await (await passwordClient()).admin("ControlService", "FreeEtcdSpace", {}, { timeoutMs: 600_000 });
      output.info("etcd is defragmented; `holdfast admin stores` shows its storage use");
    });

  addAdminOrganizations(admin);
  addAdminKeys(admin);
  addOperators(admin);
  addAuthority(admin);
  addAdminMaintenance(admin);
  addAdminArchives(admin);
  addAdminHosts(admin);
  addAdminInference(admin);
  addAdminFailover(admin);
  addAgents(admin);
  addRecovery(admin);
}
