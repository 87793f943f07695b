import { join } from "node:path";
import { certificatesOf, type HostCertificate, type RouteTable } from "./route-table.ts";

/** Where HAProxy has the certificates of domains of users, besides its own. */
export interface CertificateStore {
  /** Directory with a file for each host. */
  readonly directory: string;
  /** The list of these files, by which HAProxy chooses one for the name that a client requests. */
  readonly listFile: string;
  /** Private key of those that have no other one, PEM. */
  readonly key: string;
}

/** A certificate file, as HAProxy reads it: the chain, then the key. */
export interface CertificateFile {
  readonly path: string;
  readonly text: string;
}

export function certificateFiles(table: RouteTable, store: CertificateStore): CertificateFile[] {
  return [...certificatesOf(table)].map(([host, certificate]) => ({
    path: pathOf(host, store),
    text: textOf(certificate, store),
  }));
}

/**
 * Commands by which a running HAProxy gets the certificates of another table. `first` go before the hosts get routes,
 * `last` after removed hosts have lost theirs.
 */
export function certificateCommands(
  before: RouteTable,
  after: RouteTable,
  store: CertificateStore,
): { readonly first: string[]; readonly last: string[] } {
  const [former, current] = [certificatesOf(before), certificatesOf(after)];
  const changed = [...current].filter(([host, { chain }]) => former.get(host)?.chain !== chain);
  const removed = [...former.keys()].filter((host) => !current.has(host));
  return {
    first: changed.flatMap(([host, certificate]) => {
      const path = pathOf(host, store);
      const set = replaceCertificate(path, textOf(certificate, store));
      return former.has(host) ? set : [`new ssl cert ${path}`, ...set, `add ssl crt-list ${store.listFile} ${path}`];
    }),
    last: removed.flatMap((host) => {
      const path = pathOf(host, store);
      return [`del ssl crt-list ${store.listFile} ${path}`, `del ssl cert ${path}`];
    }),
  };
}

/** Commands that replace a certificate which HAProxy has read from a file. An empty line would end the text of one. */
export function replaceCertificate(path: string, text: string): string[] {
  return [`set ssl cert ${path} <<\n${text.replaceAll(/\n{2,}/g, "\n")}`, `commit ssl cert ${path}`];
}

function pathOf(host: string, { directory }: CertificateStore): string {
  return join(directory, `${host}.pem`);
}

function textOf({ chain, key }: HostCertificate, store: CertificateStore): string {
  return `${chain}\n${key === "" ? store.key : key}\n`;
}
