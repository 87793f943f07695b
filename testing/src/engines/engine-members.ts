import { cp } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { createPostgresqlDriver } from "@holdfast/agent/engines/postgresql/driver.ts";
import type { ReplicationFacet } from "@holdfast/agent/engines/replication-facet.ts";
import { type InstanceSpec, ReplicationSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "./engine-machine.ts";

/** Members of one PostgreSQL service, without agents. All use one certificate, so two of them can follow each other. */
export interface EngineMembers {
  /** A primary, and a replica that has copied its data; both run. */
  startPair(): Promise<{ readonly primary: EngineMachine; readonly replica: EngineMachine }>;
  /** Number of a member; the primary of `startPair` is 1. */
  numberOf(member: EngineMachine): number;
  /** Makes one the replica of the other in the settings of both. */
  follow(replica: EngineMachine, primary: EngineMachine): void;
  /** Resolves when the engine accepts connections and admits the other member. */
  start(member: EngineMachine): Promise<void>;
  remove(): Promise<void>;
}

export function createEngineMembers(version: string, settings: Partial<InstanceSpec>): EngineMembers {
  const machines: EngineMachine[] = [];
  const numberOf = (member: EngineMachine) => machines.indexOf(member) + 1;

  async function add(address: string, port?: number): Promise<EngineMachine> {
    const load = async (deps: Parameters<typeof createPostgresqlDriver>[0]) => createPostgresqlDriver(deps);
    const memberSettings = { ...settings, address, ...(port !== undefined && { port }) };
    const created = await createEngineMachine(load, "postgresql", version, memberSettings);
    machines.push(created);
    return created;
  }

  const fixture: EngineMembers = {
    numberOf,
    async startPair() {
      const primary = await add("127.0.0.1");
      const replica = await add("127.0.0.3", primary.instance.spec.port);
      await cp(primary.instance.paths.tls, replica.instance.paths.tls, { recursive: true });
      Object.assign(replica, { ca: primary.ca });
      fixture.follow(replica, primary);
      await primary.bootstrap();
      await fixture.start(primary);
      await replica.writeConfig();
      await replicationOf(replica).copy(replica.instance, replica.signal);
      await fixture.start(replica);
      return { primary, replica };
    },
    /** The certificate has the replica's name and the primary's host name. */
    follow(replica, primary) {
      const members = [replica, primary].map((each) => ({
        nodeId: each === replica ? each.serverName : "primary",
        number: numberOf(each),
        hostname: each.serverName,
        address: each.instance.spec.address,
      }));
      const replication = create(ReplicationSchema, { primaryNodeId: "primary", members });
      replica.change({ nodeId: replica.serverName, replication });
      primary.change({ nodeId: "primary", replication });
    },
    async start(member) {
      await member.writeConfig();
      await member.start();
      await member.driver.ready(member.instance, AbortSignal.timeout(60_000)).catch((error: unknown) => {
        throw new Error(member.output(), { cause: error });
      });
      await replicationOf(member).admit(member.instance, member.signal);
    },
    async remove() {
      await Promise.all(machines.map((each) => each.remove()));
    },
  };
  return fixture;
}

export function replicationOf({ driver }: EngineMachine): Required<ReplicationFacet> {
  return driver.replication as Required<ReplicationFacet>;
}
