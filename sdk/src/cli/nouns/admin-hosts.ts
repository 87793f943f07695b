import { rm, writeFile } from "node:fs/promises";
import { type AdminList, showAdminList } from "../admin-list.ts";
import type { CliCommand } from "../command.ts";
import { factor, given, several, wholeNumber } from "../flag-values.ts";

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

/** The hosts that machines are on. */
export function addAdminHosts(admin: CliCommand): void {
  const noun = admin.command("hosts").description("the hosts that machines are on");
  noun
    .command("list")
    .description("all hosts")
    .option("--limit <count>", "at most so many", wholeNumber, 1_000)
    .example("admin hosts list")
    .does((context, { limit }: { limit: number }) => showAdminList(context, hosts, {}, limit));
  noun
    .command("get <host>")
    .description("one host, with what it has left, what is promised of it, and how far its drain is")
    .example("admin hosts get local")
    .does(async ({ person, output }, hostId: string) =>
      output.show(await (await person()).admin<object>(service, "GetHost", { hostId })),
    );
  noun
    .command("add <name>")
    .description("expect a host, and write the file that a machine joins with, once and within ten minutes")
    .requiredOption("--zone <zone>", "that it is in")
    .requiredOption("--address <host:port>", "where controllers will find it")
    .requiredOption("--join-file <path>", "to write; take it to the machine, and remove it then")
    .option("--memory-overcommit <factor>", "how many times its memory may be promised; 0 for without limit", factor)
    .option("--disk-overcommit <factor>", "how many times its disk may be promised; 0 for without limit", factor)
    .example("admin hosts add rack-2 --zone east --address 10.0.0.2:8450 --join-file rack-2.json")
    .does(async ({ person, output }, hostId: string, { joinFile: path, zone, address, ...factors }: AddFlags) => {
      const request = { hostId, zone, address, ...given(factors) };
      const { joinFile } = await (await person()).admin<{ joinFile: string }>(service, "AddHost", request);
      // A new file: writing to an existing one would keep its mode.
      await rm(path, { force: true });
      await writeFile(path, joinFile, { mode: 0o600, flag: "wx" });
      output.say(`${path} is good once, for ten minutes: on the machine, npm start -- host --join ${path}`);
    });
  noun
    .command("cordon <host>")
    .description("place no more machines on a host; what is there goes on")
    .example("admin hosts cordon rack-2")
    .does(async ({ person, output }, hostId: string) =>
      output.show(await (await person()).admin<object>(service, "CordonHost", { hostId })),
    );
  noun
    .command("uncordon <host>")
    .description("let a host take machines again; services that its drain stopped start again")
    .example("admin hosts uncordon rack-2")
    .does(async ({ person, output }, hostId: string) =>
      output.show(await (await person()).admin<object>(service, "UncordonHost", { hostId })),
    );
  noun
    .command("drain <host>")
    .description("empty a host; without --stop-single-nodes it only tells which services stand in the way")
    .option("--stop-single-nodes", "stop services that have their only node there, until the host is uncordoned")
    .option("--yes", "do not ask")
    .example("admin hosts drain rack-2 --stop-single-nodes")
    .does(async (context, hostId: string, flags: { stopSingleNodes?: boolean; yes?: boolean }) => {
      const stopSingleNodes = flags.stopSingleNodes === true;
      if (stopSingleNodes) await context.confirm(`Stop every service that has its only node on ${hostId}?`, flags.yes);
      const client = await context.person();
      context.output.show(await client.admin<object>(service, "DrainHost", { hostId, stopSingleNodes }));
    });
  noun
    .command("remove <host>")
    .description("forget a host that has no machines, or one that is destroyed with what was on it")
    .option("--destroyed", "it is gone for good; name all services whose data is lost")
    .option("--lost-service <service>", "id of a service whose data is lost (repeat)", several)
    .option("--yes", "do not ask")
    .example("admin hosts remove rack-2")
    .example("admin hosts remove rack-2 --destroyed --lost-service 019a...")
    .does(async (context, hostId: string, flags: { destroyed?: boolean; lostService?: string[]; yes?: boolean }) => {
      const { destroyed = false, lostService: lostServices = [], yes } = flags;
      const lost = destroyed ? ` The data of ${lostServices.length} services is given up.` : "";
      await context.confirm(`Remove host ${hostId}?${lost}`, yes);
      await (await context.person()).admin(service, "RemoveHost", { hostId, destroyed, lostServices });
      context.output.say(`${hostId} is removed`);
    });
}
