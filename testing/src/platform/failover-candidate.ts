import { root } from "@holdfast/controller/kernel/store/resource.ts";
import { managedServiceKind, type NodeSpec } from "@holdfast/controller/services/service/managed-service.ts";
import { openEtcd } from "./etcd-dump.ts";

interface ObservationJson {
  readonly instance: { readonly replication?: { readonly fencedGeneration?: string } };
}

/**
 * True once a replica of the service is a failover candidate, and its primary runs with settings that include it. Reads
 * the etcd of the platform in `directory`, so that every controller's later view includes the candidate.
 */
export async function isFailoverCandidate(directory: string, service: string, primary: string): Promise<boolean> {
  const etcd = openEtcd(directory);
  try {
    const stored = async (key: string) => String(await etcd.raw.get(`${root}/${key}`).string());
    const { spec } = managedServiceKind.parse(await stored(`managed-service/${service}`));
    const { instance } = JSON.parse(await stored(`observation/${primary}`)) as ObservationJson;
    const fenced = Number(instance.replication?.fencedGeneration ?? 0);
    const isCandidate = ({ failoverCandidate = Number.POSITIVE_INFINITY }: NodeSpec) => failoverCandidate <= fenced;
    const hasStandby = (spec.syncStandbys ?? []).length > 0 && spec.unconfirmedSyncGeneration === undefined;
    // In the synchronous modes a replica is named only if commits waited for one.
    const isNameable = (spec.replicationMode ?? "async") === "async" || hasStandby;
    return isNameable && spec.nodes.some((node) => node.id !== primary && isCandidate(node));
  } finally {
    etcd.raw.close();
  }
}
