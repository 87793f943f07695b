import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { partyCertificate, partyFile } from "./certificates.ts";
import { portsOf } from "./layout.ts";
import { type BrokerEndpoint, type Connection, withConnection } from "./protocol/connection.ts";

/** The broker's port for members, where the platform has all rights by its certificate. */
export async function withSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Connection) => Promise<T>,
): Promise<T> {
  return withConnection(await endpointOf(instance, portsOf(instance).brokers), signal, work);
}

/** The broker's port for clients, without a user. */
export async function withClientSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Connection) => Promise<T>,
): Promise<T> {
  return withConnection(await endpointOf(instance, portsOf(instance).private), signal, work);
}

async function endpointOf(instance: Instance, port: number): Promise<BrokerEndpoint> {
  const [pem, authority] = await Promise.all([
    readEngineFile(partyFile(instance, "agent")),
    readEngineFile(partyCertificate(instance, "server")),
  ]);
  return { address: instance.spec.address, port, key: pem, certificate: pem, authority };
}
