import { adminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { addAdminFailover } from "./admin-failover.ts";
import { addAdminArchives } from "./admin-archives.ts";
import { addAdminHosts } from "./admin-hosts.ts";
import { addAdminInference } from "./admin-inference.ts";
import { addAgents } from "./admin-agents.ts";
import { addAdminLists } from "./admin-lists.ts";
import { addAdminMaintenance } from "./admin-maintenance.ts";
import { addAuthority } from "./admin-authority.ts";
import { addOperators } from "./admin-operators.ts";
import { addAdminKeys, addAdminOrganizations } from "./admin-organizations.ts";
import { addRecovery } from "./admin-recovery.ts";

/** Calls of holdfast.admin.v1, which takes platform operators only. */
export function addAdmin(admin: CliCommand): void {
  addAdminLists(admin);

  admin
    .command("orphans")
    .description("machines that nothing owns; without --sweep it only looks")
    .option("--sweep", "stop those with data for 7 days, remove the others")
    .option("--yes", "do not ask")
    .example("admin orphans")
    .example("admin orphans --sweep")
    .does(async ({ person, output, confirm }, { sweep, yes }: { sweep?: boolean; yes?: boolean }) => {
      if (sweep === true) await confirm("Stop or remove all machines that nothing owns?", yes);
      const orphans = { service: "FleetService", method: "SweepOrphans", plural: "orphans" };
      const found = await adminList(await person(), orphans, { dryRun: sweep !== true }).toArray();
      output.list(found, ["machineId", "hasData", "action", "keptUntil"]);
    });

  admin
    .command("drain <controller>")
    .description("have a controller give up its keys and agents")
    .example("admin drain 019a...")
    .does(async ({ person, output }, controllerId: string) => {
      await (await person()).admin("ControlService", "DrainController", { controllerId });
      output.say(`${controllerId} gives up its keys`);
    });

  admin
    .command("hold <kind>")
    .description("hold back what the platform does by itself: deletion (by time), maintenance (in windows) or failover")
    .requiredOption("--reason <reason>", "for whoever releases it")
    .example("admin hold failover --reason 'the switches are replaced'")
    .does(async ({ person, output }, kind: string, { reason }: { reason: string }) => {
      await (await person()).admin("ControlService", "PlaceHold", { kind, reason });
      output.say(`${kind} is held back; \`holdfast admin release-hold ${kind}\` lets it go on`);
    });

  admin
    .command("release-hold <kind>")
    .description("confirm that what is held back may go on")
    .example("admin release-hold restored")
    .does(async ({ person, output }, kind: string) => {
      await (await person()).admin("ControlService", "ReleaseHold", { kind });
      output.say(`${kind} is released`);
    });

  admin
    .command("free-etcd")
    .description("compact and defragment etcd, and end the alarm (NOSPACE) with which it stopped all writing")
    .example("admin free-etcd")
    .does(async ({ person, output }) => {
      // A member of the largest size that etcd supports takes a minute to defragment.
      await (await person()).admin("ControlService", "FreeEtcdSpace", {}, { timeoutMs: 600_000 });
      output.say("etcd is defragmented; `holdfast admin stores` shows what is in use");
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
