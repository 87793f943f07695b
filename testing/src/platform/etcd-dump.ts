import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createEtcdClient, type EtcdClient } from "@holdfast/controller/kernel/store/etcd-client.ts";

/** A client of an installation's own etcd, with the controller's certificate. The caller closes `raw`. */
export function openEtcd(directory: string): EtcdClient {
  const { ports } = JSON.parse(readFileSync(join(directory, "installation.json"), "utf8"));
  const file = (name: string) => readFileSync(join(directory, "pki", "controller", name));
  const credentials = { ca: file("ca.crt"), certificate: file("tls.crt"), privateKey: file("tls.key") };
  return createEtcdClient({ hosts: [`https://127.0.0.1:${ports.etcd_client}`], credentials });
}

/** Every current key of an installation's etcd with its value. */
export async function dumpEtcd(directory: string): Promise<Map<string, string>> {
  const etcd = openEtcd(directory);
  try {
    return new Map(Object.entries(await etcd.raw.getAll().prefix("").strings()));
  } finally {
    etcd.raw.close();
  }
}
