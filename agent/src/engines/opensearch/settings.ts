import { existsSync } from "node:fs";
import { join } from "node:path";
import { mlPlugin } from "@holdfast/common/engine-catalog/opensearch.ts";
import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { principalOf } from "../member-certificates.ts";
import { membersOf } from "../members.ts";
import {
  certificatesOf,
  configDirectory,
  dataDirectory,
  nodeNameOf,
  ownNumber,
  pluginsDirectory,
  portsOf,
  repositoryDirectory,
  temporaryDirectory,
} from "./layout.ts";

type Value = string | number | boolean | readonly string[];

/** The engine's settings that it reads when it starts. */
export function memberSettings(instance: Instance): Record<string, Value> {
  const { spec } = instance;
  const { http, transport } = portsOf(instance);
  const members = membersOf(spec).filter(({ address }) => address !== "");
  const addresses = members.length === 0 ? [spec.address] : members.map(({ address }) => address);
  return {
    "cluster.name": spec.peers?.clusterId ?? spec.serviceId,
    "node.name": nodeNameOf(ownNumber(instance)),
    "path.data": dataDirectory(instance),
    "path.logs": temporaryDirectory(instance),
    "path.repo": [repositoryDirectory(instance)],
    "network.host": spec.address,
    "http.port": http,
    "transport.port": transport,
    "discovery.seed_hosts": addresses.map(
      (address) => `${address.includes(":") ? `[${address}]` : address}:${transport}`,
    ),
    // Without a leader a write is refused. By default it waits, without a limit, for a leader that removes lost copies.
    "cluster.no_cluster_manager_block": "write",
    // Hosts limit the number of mapped files.
    "node.store.allow_mmap": false,
    // The platform blocks writes on a disk that is nearly full. With several members, shards go to those with space.
    "cluster.routing.allocation.disk.watermark.low": "85%",
    "cluster.routing.allocation.disk.watermark.high": "90%",
    "cluster.routing.allocation.disk.watermark.flood_stage": "100%",
    ...startSettings(members.length),
    ...securitySettings(instance),
    ...modelSettings(instance),
    ...Object.fromEntries(parametersAtStart(instance)),
  };
}

/** After a start of all members their shards are opened where they are, and not copied to those that started first. */
function startSettings(members: number): Record<string, Value> {
  if (members < 2) return {};
  return { "gateway.expected_data_nodes": members, "gateway.recover_after_time": "20s" };
}

function securitySettings(instance: Instance): Record<string, Value> {
  const { party, membersAuthority, trustedClients } = certificatesOf(instance);
  const own = (path: string) => path.slice(configDirectory(instance).length + 1);
  const layer = (name: "transport" | "http", trusted: string): Record<string, Value> => ({
    [`plugins.security.ssl.${name}.enabled`]: true,
    [`plugins.security.ssl.${name}.pemcert_filepath`]: own(party("server")),
    [`plugins.security.ssl.${name}.pemkey_filepath`]: own(party("server")),
    [`plugins.security.ssl.${name}.pemtrustedcas_filepath`]: own(trusted),
  });
  return {
    ...layer("transport", membersAuthority),
    ...layer("http", trustedClients),
    // Members are addressed by their addresses, which certificates do not name.
    "plugins.security.ssl.transport.enforce_hostname_verification": false,
    "plugins.security.ssl.http.clientauth_mode": "REQUIRE",
    "plugins.security.authcz.admin_dn": [`CN=${principalOf("agent")}`],
    "plugins.security.nodes_dn": [`CN=${principalOf("server")}`],
    "plugins.security.allow_default_init_securityindex": true,
    "plugins.security.system_indices.enabled": true,
    "plugins.security.enable_snapshot_restore_privilege": false,
    "plugins.security.audit.type": "noop",
  };
}

/**
 * Settings of the plugin for models, which the engine has only with it. Models run on every member, and users upload
 * them in parts: members neither fetch models from other servers nor call them.
 */
function modelSettings({ paths }: Pick<Instance, "paths">): Record<string, Value> {
  if (!existsSync(join(pluginsDirectory(paths.software), mlPlugin))) return {};
  return {
    "plugins.ml_commons.only_run_on_ml_node": false,
    "plugins.ml_commons.allow_registering_model_via_local_file": true,
    "plugins.ml_commons.allow_registering_model_via_url": false,
    "plugins.ml_commons.remote_inference.enabled": false,
  };
}

/** Parameters of the catalog that the engine reads when it starts. */
export function parametersAtStart(instance: Instance): [name: string, value: string][] {
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  return [...effectiveParameters(instance)].filter(([name]) => catalog.get(name)?.needsRestart === true);
}

/** Parameters of the catalog that apply to the running cluster. */
export function liveParameters(instance: Instance): [name: string, value: string][] {
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  return [...effectiveParameters(instance)].filter(([name]) => catalog.get(name)?.needsRestart === false);
}
