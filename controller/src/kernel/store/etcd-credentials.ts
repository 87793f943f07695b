import { readFile } from "node:fs/promises";
import type { EtcdOptions } from "./etcd-client.ts";

/** Reads the PEM files that the settings name; undefined without an authority: plain HTTP. */
export async function readEtcdCredentials(files: {
  readonly etcdCa: string;
  readonly etcdCert: string;
  readonly etcdKey: string;
}): Promise<EtcdOptions["credentials"]> {
  if (files.etcdCa === "") return undefined;
  const optional = async (file: string) => (file === "" ? undefined : await readFile(file));
  const [ca, certificate, privateKey] = await Promise.all([
    readFile(files.etcdCa),
    optional(files.etcdCert),
    optional(files.etcdKey),
  ]);
  return { ca, ...(certificate && { certificate }), ...(privateKey && { privateKey }) };
}
