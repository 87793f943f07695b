import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import type { EngineDriver, Instance } from "../../engines/engine-driver.ts";
import { ownMember } from "../../engines/members.ts";
import type { InstanceStatus } from "./instance-status.ts";

/** Membership to which the data on this machine belong, stored in `peer.json` in the data directory. */
interface PeerMarker {
  readonly clusterId: string;
  readonly number: number;
  readonly started: "form" | "join";
  /** False while the data are incomplete. */
  readonly finished: boolean;
}

/** Prepares the data of a member of a cluster before its engine starts. */
export interface PeerData {
  /** Resolves once the member formed or joined its cluster. No engine may run. */
  ensure(driver: EngineDriver, instance: Instance, signal: AbortSignal): Promise<void>;
  /** True if the data on this machine belong to a member of the cluster. */
  isMember(instance: Instance): Promise<boolean>;
}

const markerName = "peer.json";
const markerFormat = storedFormat<PeerMarker>({ started: "begun" });

export function createPeerData({
  status,
  log,
}: {
  readonly status: Pick<InstanceStatus, "setState">;
  readonly log: Log;
}): PeerData {
  return {
    async ensure(driver, instance, signal) {
      const { spec, paths } = instance;
      const { peers } = spec;
      if (peers === undefined) return;
      const facet = driver.peers;
      if (facet === undefined)
        throw new Error(`This machine's agent does not support clusters of ${spec.engine}. Upgrade the agent.`);
      const number = numberOf(instance);
      const { clusterId } = peers;
      const before = await readMarker(paths.data);
      if (before !== undefined && (before.clusterId !== clusterId || before.number !== number))
        throw new Error(
          `The data belong to member ${before.number} of another cluster, or to another member of this one.`,
        );
      if (before?.finished === true) return;
      // An existing cluster is never formed again, which would create a second cluster of the same members.
      const started = peers.form && before?.started !== "join" ? "form" : "join";
      await writeMarker(paths.data, { clusterId, number, started, finished: false });
      if (started === "form") {
        status.setState("preparing", "The member forms the cluster.");
        await facet.formCluster(instance, signal);
      } else {
        status.setState("preparing", "The member joins its cluster.");
        await facet.join(instance, signal);
      }
      await writeMarker(paths.data, { clusterId, number, started, finished: true });
      log.info(started === "form" ? "cluster formed" : "cluster joined", { service: spec.serviceId, number });
    },
    async isMember({ spec, paths }) {
      const marker = await readMarker(paths.data);
      return marker?.finished === true && marker.clusterId === spec.peers?.clusterId;
    },
  };
}

/** Number of this member. Throws if the settings do not list it. */
function numberOf(instance: Instance): number {
  const member = ownMember(instance);
  if (member === undefined) throw new Error("The settings do not list this machine as a member.");
  return member.number;
}

async function readMarker(data: string): Promise<PeerMarker | undefined> {
  const bytes = await readIfExists(join(data, markerName));
  return bytes === undefined ? undefined : markerFormat.parse(bytes.toString("utf8"));
}

function writeMarker(data: string, marker: PeerMarker): Promise<void> {
  return writeDurably(join(data, markerName), markerFormat.format(marker), 0o640);
}
