import { request } from "node:https";

/** A member of an etcd, and the name in its certificate. */
export interface EtcdTarget {
  readonly address: string;
  readonly port: number;
  readonly serverName: string;
  /** Trust bundle, PEM. */
  readonly ca: string;
}

/** etcd refused a call. */
export class EtcdRefusal extends Error {
  override readonly name = "EtcdRefusal";
}

/** Calls a method of etcd's JSON gateway, such as `kv/put` (etcd manual, gRPC gateway). */
export function callEtcd<T>(
  { address, port, serverName, ca }: EtcdTarget,
  method: string,
  body: object,
  signal: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = request(
      { host: address, port, path: `/v3/${method}`, method: "POST", servername: serverName, ca, signal, agent: false },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.once("error", reject);
        response.once("end", () => {
          if (response.statusCode === 200) resolve(JSON.parse(text) as T);
          else reject(new EtcdRefusal(`${method}: ${text.trim()}`));
        });
      },
    );
    call.once("error", reject);
    call.end(JSON.stringify(body));
  });
}

export const encoded = (text: string): string => Buffer.from(text).toString("base64");
export const decoded = (text: string): string => Buffer.from(text, "base64").toString("utf8");

/** Range of all keys with this prefix. */
export function prefixRange(prefix: string): { readonly key: string; readonly range_end: string } {
  const end = Buffer.from(prefix);
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key: encoded(prefix), range_end: end.toString("base64") };
}

/** Pairs of a range. */
export interface RangeReply {
  readonly kvs?: readonly { readonly key: string; readonly value?: string }[];
}
