import { root } from "@holdfast/controller/kernel/store/resource.ts";
import type { NodeSpec } from "@holdfast/controller/services/service/managed-service.ts";
import { openEtcd } from "./etcd-dump.ts";

interface ObservationJson {
  readonly instance: { readonly replication?: { readonly fencedGeneration?: string } };
}

/**
 * By the store of the platform in this directory: a replica of the service has a vote, and its primary runs by settings that say
 * so. No controller knows less.
 */
export async function isCountedOn(directory: string, service: string, primary: string): Promise<boolean> {
  const etcd = openEtcd(directory);
  try {
    const stored = async <T>(key: string) => JSON.parse(String(await etcd.raw.get(`${root}/${key}`).string())) as T;
    const { spec } = await stored<{ spec: { nodes: readonly NodeSpec[] } }>(`managed-service/${service}`);
    const { instance } = await stored<ObservationJson>(`observation/${primary}`);
    const fenced = Number(instance.replication?.fencedGeneration ?? 0);
    return spec.nodes.some(({ id, vouches = Number.POSITIVE_INFINITY }) => id !== primary && vouches <= fenced);
  } finally {
    etcd.raw.close();
  }
}
