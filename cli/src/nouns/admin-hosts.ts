import { rm, writeFile } from "node:fs/promises";
import { InvalidArgumentError } from "commander";
import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { factor, omitUndefined, collect, integer } from "../flag-values.ts";

const service = "HostService";

const hosts: AdminList = {
  service,
  method: "ListHosts",
  plural: "hosts",
  columns: ["id", "zone", "state", "cordoned", "drain", "provider", "machines", "waitingMachines", "address", "reason"],
};

interface AddFlags {
  readonly zone: string;
  readonly address: string;
  readonly joinFile: string;
  readonly memoryOvercommit?: number;
  readonly diskOvercommit?: number;
}

interface RemoveFlags {
  readonly destroyed?: boolean;
  readonly lostService?: string[];
  readonly lostOwner?: LostOwner[];
  readonly yes?: boolean;
}

interface LostOwner {
  readonly kind: string;
  readonly id: string;
}

/** Collects the owners of a repeatable flag, each as `kind/id`. */
function owners(text: string, before: readonly LostOwner[] = []): LostOwner[] {
  const [, kind = "", id = ""] = /^([^/]+)\/([^/]+)$/.exec(text) ?? [];
  if (id === "") throw new InvalidArgumentError("it must have the format kind/id, such as managed-service/019a...");
  return [...before, { kind, id }];
}

/** Commands for hosts. */
export function addAdminHosts(admin: CliCommand): void {
  const noun = admin.command("hosts").description("hosts, which run machines");
  noun
    .command("list")
    .description("list all hosts")
    .option("--limit <count>", "maximum number of entries", integer, 1_000)
    .example("admin hosts list")
    .does((context, { limit }: { limit: number }) => showAdminList(context, hosts, {}, limit));
  noun
    .command("get <host>")
    .description("show a host with its free and allocated capacity, and the progress of its drain")
    .example("admin hosts get local")
    .does(async ({ passwordClient, output }, hostId: string) =>
      output.show(await (await passwordClient()).admin<object>(service, "GetHost", { hostId })),
    );
  noun
    .command("add <name>")
    .description("add a host, and write its join file, which is valid once and for ten minutes")
    .requiredOption("--zone <zone>", "zone of the host")
    .requiredOption("--address <host:port>", "address at which controllers reach the host")
    .requiredOption("--join-file <path>", "path of the join file; copy it to the host and delete it")
    .option("--memory-overcommit <factor>", "factor by which memory may be overcommitted; 0 for no limit", factor)
    .option("--disk-overcommit <factor>", "factor by which disk space may be overcommitted; 0 for no limit", factor)
    .example("admin hosts add rack-2 --zone east --address 10.0.0.2:8450 --join-file rack-2.json")
    .does(
      async ({ passwordClient, output }, hostId: string, { joinFile: path, zone, address, ...factors }: AddFlags) => {
        const request = { hostId, zone, address, ...omitUndefined(factors) };
        const { joinFile } = await (await passwordClient()).admin<{ joinFile: string }>(service, "AddHost", request);
        // Removed first, because writing to an existing file would not change its mode.
        await rm(path, { force: true });
        await writeFile(path, joinFile, { mode: 0o600, flag: "wx" });
        output.info(`${path} is valid once, for ten minutes. On the host, run: npm start -- host --join ${path}`);
      },
    );
  noun
    .command("cordon <host>")
    .description("place no more machines on a host; its machines keep running")
    .example("admin hosts cordon rack-2")
    .does(async ({ passwordClient, output }, hostId: string) =>
      output.show(await (await passwordClient()).admin<object>(service, "CordonHost", { hostId })),
    );
  noun
    .command("uncordon <host>")
    .description("allow machines on a host again, and start services that its drain stopped")
    .example("admin hosts uncordon rack-2")
    .does(async ({ passwordClient, output }, hostId: string) =>
      output.show(await (await passwordClient()).admin<object>(service, "UncordonHost", { hostId })),
    );
  noun
    .command("drain <host>")
    .description(
      "cordon a host and move its machines to other hosts; a service with its only node there prevents the end of the drain, unless --stop-single-nodes",
    )
    .option("--stop-single-nodes", "stop services with their only node on the host until it is uncordoned")
    .option("--yes", "do not ask for confirmation")
    .example("admin hosts drain rack-2 --stop-single-nodes")
    .does(async (context, hostId: string, flags: { stopSingleNodes?: boolean; yes?: boolean }) => {
      const stopSingleNodes = flags.stopSingleNodes === true;
      if (stopSingleNodes) await context.confirm(`Stop every service that has its only node on ${hostId}?`, flags.yes);
      const client = await context.passwordClient();
      context.output.show(await client.admin<object>(service, "DrainHost", { hostId, stopSingleNodes }));
    });
  noun
    .command("remove <host>")
    .description("remove a host without machines, or a destroyed host with its machines")
    .option("--destroyed", "declare the host destroyed; name all owners whose data is lost")
    .option("--lost-service <service>", "id of a service whose data is lost (repeatable)", collect)
    .option("--lost-owner <kind/id>", "owner of any kind whose data is lost (repeatable)", owners)
    .option("--yes", "do not ask for confirmation")
    .example("admin hosts remove rack-2")
    .example("admin hosts remove rack-2 --destroyed --lost-service 019a...")
    .example("admin hosts remove rack-2 --destroyed --lost-owner managed-service/019a...")
    .does(async (context, hostId: string, flags: RemoveFlags) => {
      const { destroyed = false, lostService: lostServices = [], lostOwner: lostOwners = [], yes } = flags;
      const lost = destroyed ? ` The data of ${lostServices.length + lostOwners.length} owners is lost.` : "";
      await context.confirm(`Remove host ${hostId}?${lost}`, yes);
      await (await context.passwordClient()).admin(service, "RemoveHost", {
        hostId,
        destroyed,
        lostServices,
        lostOwners,
      });
      context.output.info(`${hostId} is removed`);
    });
}
