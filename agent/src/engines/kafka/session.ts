import { setTimeout as sleep } from "node:timers/promises";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { membersAuthority, partyFile } from "./certificates.ts";
import { membersOf, otherMembers } from "../members.ts";
import { portsOf } from "./layout.ts";
import { metadata } from "./protocol/apis.ts";
import {
  type BrokerEndpoint,
  type Connection,
  type OpenConnection,
  openConnection,
  withConnection,
} from "./protocol/connection.ts";

/** The broker's port for members, where the platform has all rights by its certificate. */
export async function withSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Connection) => Promise<T>,
): Promise<T> {
  return withConnection(await endpointOf(instance, portsOf(instance).brokers), signal, work);
}

/** The port for members of another broker of the service. */
export async function withMemberSession<T>(
  instance: Instance,
  address: string,
  signal: AbortSignal,
  work: (session: Connection) => Promise<T>,
): Promise<T> {
  const endpoint = await endpointOf(instance, portsOf(instance).brokers);
  return withConnection({ ...endpoint, address }, signal, work);
}

/** A session at the port for members of a broker of the service, which the caller closes. */
export async function openMemberSession(
  instance: Instance,
  address: string,
  signal: AbortSignal,
): Promise<OpenConnection> {
  const endpoint = await endpointOf(instance, portsOf(instance).brokers);
  return openConnection({ ...endpoint, address }, signal);
}

/** Sessions at one broker or several. */
export type Sessions = readonly [Connection, ...Connection[]];

/**
 * Sessions at all brokers of the service that respond, this one first: each answers only for the partitions that it
 * leads and for the groups that it coordinates.
 */
export async function withAllSessions<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (sessions: Sessions) => Promise<T>,
): Promise<T> {
  const addresses = otherMembers(instance).flatMap(({ address }) => (address === "" ? [] : [address]));
  const add = async ([address, ...more]: readonly string[], sessions: Sessions): Promise<T> => {
    if (address === undefined) return work(sessions);
    return withMemberSession(instance, address, signal, async (session) => {
      const isUp = await isResponding(session);
      return add(more, isUp ? [...sessions, session] : sessions);
    });
  };
  return withSession(instance, signal, (own) => add(addresses, [own]));
}

const respondsWithinMs = 1_000;

/** False for a broker that is down or hangs; its partitions have other leaders soon. */
export async function isResponding(session: Connection, withinMs = respondsWithinMs): Promise<boolean> {
  const silence = sleep(withinMs, false, { ref: false });
  const nothing = { topics: [], allowAutoCreation: false, includeAuthorizedOperations: false };
  const response = session.call(metadata, nothing).then(
    () => true,
    () => false,
  );
  return Promise.race([response, silence]);
}

/** Address of a broker of the service; undefined if the service has none with this number. */
export function addressOfBroker({ spec }: Instance, number: number): string | undefined {
  const members = membersOf(spec);
  if (members.length === 0) return spec.address;
  const found = members.find((member) => member.number === number)?.address;
  return found === "" ? undefined : found;
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
    readEngineFile(membersAuthority(instance)),
  ]);
  return { address: instance.spec.address, port, key: pem, certificate: pem, authority };
}
