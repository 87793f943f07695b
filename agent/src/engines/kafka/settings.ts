import { kafkaManagedSettings } from "@holdfast/common/engine-catalog/kafka-parameters.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { membersOf, ownMember } from "../members.ts";
import { membersAuthority, partyFile, principalOf, trustedClients } from "./certificates.ts";
import { logDirectory, ownNumber, portsOf } from "./layout.ts";

type Settings = [name: string, value: string][];

/** Internal topics have few partitions, since each takes files and memory on every plan. */
export const internalPartitions = "16";
/**
 * Clients get the name of a broker for their own network, so each network has a listener. Those without TLS get another
 * port: TLS of the listener `plain` ends at the private front.
 */
const clientListeners = ["public", "private", "plain"] as const;
/** A dropped user's open connection ends by then. */
const reauthenticationMs = "600000";

/** Settings by which the member finds its cluster; those that the storage tool needs. */
export function quorumSettings(instance: Instance, directory = logDirectory(instance)): Settings {
  const { address } = instance.spec;
  const ports = portsOf(instance);
  const listenerOf = (name: (typeof clientListeners)[number] | "brokers" | "controllers") =>
    `${name.toUpperCase()}://${address}:${ports[name]}`;
  const { hostname = address, publicHostname = "" } = ownMember(instance) ?? {};
  const members = membersOf(instance.spec).filter((member) => member.address !== "");
  const servers = members.length === 0 ? [address] : members.map((member) => member.address);
  return [
    ["process.roles", "broker,controller"],
    ["node.id", String(ownNumber(instance))],
    ["log.dirs", directory],
    ["listeners", ([...clientListeners, "brokers", "controllers"] as const).map(listenerOf).join()],
    [
      "advertised.listeners",
      [
        `PUBLIC://${publicHostname === "" ? hostname : publicHostname}:${ports.clients}`,
        `PRIVATE://${hostname}:${ports.clients}`,
        `PLAIN://${hostname}:${ports.privateClients}`,
        listenerOf("brokers"),
        listenerOf("controllers"),
      ].join(),
    ],
    ["listener.security.protocol.map", "PUBLIC:SASL_SSL,PRIVATE:SASL_SSL,PLAIN:SASL_SSL,BROKERS:SSL,CONTROLLERS:SSL"],
    ["inter.broker.listener.name", "BROKERS"],
    ["controller.listener.names", "CONTROLLERS"],
    ["controller.quorum.bootstrap.servers", servers.map((each) => `${each}:${ports.controllers}`).join()],
  ];
}

/** Settings of TLS, users and their rights. */
function accessSettings(instance: Instance): Settings {
  const scram = ["SCRAM-SHA-256", "SCRAM-SHA-512"];
  const login = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
  // A broker is a client of the controller in its process.
  const supers = [principalOf("agent"), principalOf("server")];
  return [
    ["ssl.client.auth", "required"],
    // Members are addressed by their addresses, which certificates do not name.
    ["ssl.endpoint.identification.algorithm", ""],
    ["ssl.principal.mapping.rules", "RULE:^CN=(holdfast-[a-z]+)$/$1/,DEFAULT"],
    ["sasl.enabled.mechanisms", scram.join()],
    ...clientListeners.flatMap(
      (listener): Settings => [
        // For SASL listeners Kafka reads ssl.client.auth only with the listener's prefix.
        [`listener.name.${listener}.ssl.client.auth`, "required"],
        ...scram.map((name): [string, string] => [
          `listener.name.${listener}.${name.toLowerCase()}.sasl.jaas.config`,
          login,
        ]),
      ],
    ),
    ["authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"],
    ["super.users", supers.map((name) => `User:${name}`).join(";")],
    ["allow.everyone.if.no.acl.found", "false"],
    ["connections.max.reauth.ms", reauthenticationMs],
    ...certificateSettings(instance),
  ];
}

function certificateSettings(instance: Instance): Settings {
  const filesOf = (listener: string, keys: string, trusted: string): Settings => [
    [`listener.name.${listener}.ssl.keystore.type`, "PEM"],
    [`listener.name.${listener}.ssl.keystore.location`, keys],
    [`listener.name.${listener}.ssl.truststore.type`, "PEM"],
    [`listener.name.${listener}.ssl.truststore.location`, trusted],
  ];
  return [
    ...clientListeners.flatMap((listener) =>
      filesOf(listener, partyFile(instance, "server"), trustedClients(instance)),
    ),
    ...filesOf("brokers", partyFile(instance, "server"), membersAuthority(instance)),
    ...filesOf("controllers", partyFile(instance, "server"), membersAuthority(instance)),
  ];
}

/** Replicas of a partition by default: three, or as many as there are members. */
export function replicationFactorOf({ spec }: Pick<Instance, "spec">): number {
  return Math.min(Math.max(membersOf(spec).length, 1), 3);
}

/**
 * Settings of a broker without listeners for clients, which is alone: members that are to join do not exist yet. It
 * deletes no records.
 */
export function privateSettings(instance: Instance): Settings {
  const { address } = instance.spec;
  const { brokers, controllers } = portsOf(instance);
  const listeners = `BROKERS://${address}:${brokers},CONTROLLERS://${address}:${controllers}`;
  const own: Settings = [
    ["listeners", listeners],
    ["advertised.listeners", listeners],
    ["listener.security.protocol.map", "BROKERS:SSL,CONTROLLERS:SSL"],
    ["controller.quorum.bootstrap.servers", `${address}:${controllers}`],
    ["offsets.topic.replication.factor", "1"],
    ["transaction.state.log.replication.factor", "1"],
    ["transaction.state.log.min.isr", "1"],
    ["default.replication.factor", "1"],
    ["min.insync.replicas", "1"],
    ["auto.create.topics.enable", "false"],
    ["log.cleaner.enable", "false"],
    ["log.retention.check.interval.ms", "86400000"],
  ];
  return [...new Map([...brokerSettings(instance), ...own])];
}

/** The file of all settings. */
export function brokerSettings(instance: Instance): Settings {
  const members = Math.max(membersOf(instance.spec).length, 1);
  const factor = String(replicationFactorOf(instance));
  return [
    ...quorumSettings(instance),
    ...accessSettings(instance),
    ["offsets.topic.num.partitions", internalPartitions],
    ["offsets.topic.replication.factor", factor],
    ["transaction.state.log.num.partitions", internalPartitions],
    ["transaction.state.log.replication.factor", factor],
    ["transaction.state.log.min.isr", members >= 3 ? "2" : "1"],
    ["default.replication.factor", factor],
    ...Object.entries(kafkaManagedSettings),
    ...effectiveParameters(instance),
  ];
}
