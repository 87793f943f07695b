import type { Platform } from "../support/platform/platform.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createServices, expectStatus } from "../support/platform/services.ts";
import type { Existing } from "../conformance/authorization-cases.ts";

/** An organization with one object of each kind that its users can create. */
export interface Marked {
  readonly existing: Existing;
  /** Contained in every name and text of its objects, and nowhere else. */
  readonly text: string;
  /** Cursors of lists of its objects, which continue after them. */
  readonly cursors: readonly string[];
}

interface Made {
  readonly id: string;
}

/** Fills the organization of the platform's owner. */
export async function markEverything({ rest, ...platform }: Platform, organizationId: string): Promise<Marked> {
  const text = "zq7mark";
  const make = async <T = Made>(path: string, body: object): Promise<T> => {
    const answer = await rest.post<T>(path, body);
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  };
  const services = createServices({ rest, ...platform });
  const { service } = await services.createRunning(text, { tags: { [text]: text } });
  const { id: serviceId } = service;
  const path = `/managed-services/${serviceId}`;
  await make(`${path}/databases`, { name: text });
  await make(`${path}/database-users`, { username: text, role: "readwrite" });
  await make(`${path}/queues`, { name: text });
  const isActive = async () => {
    const { json } = await rest.get<{ status: string }>(`${path}/queues/${text}`);
    return json.status === "Active";
  };
  await waitUntil("the queue exists", isActive);
  await make(`${path}/queues/${text}/messages`, { messages: [{ payload: { text } }] });
  const { id: backupId } = await make(`${path}/backups`, {});
  const { id: ruleId } = await make(`${path}/alerts/rules`, { metric: "cpu", condition: "gt", threshold: 101 });
  const config = { url: `https://1.1.1.1/${text}` };
  const { id: channelId } = await make("/alerts/channels", { name: text, type: "webhook", config });
  const { id: webhookId } = await make("/webhooks", config);
  const { id: exportId } = await make("/api/v1/metrics-exports", {
    service_id: serviceId,
    name: text,
    destination_type: "prometheus_remote_write",
    data_type: "metrics",
    configuration: { ...config, bearer_token: text },
  });
  const { id: keyId } = await make("/api-keys", { name: text, scopes: ["services:read"] });
  const { id: inferenceKeyId } = await make(`/organizations/${organizationId}/inference/keys`, { name: text });
  const { id: tokenId } = await make("/tokens", { scopes: ["services:read"], ttl_seconds: 600 });
  await make("/users", { username: text });
  expectStatus(await rest.patch(`/organizations/${organizationId}`, { name: `${text} ltd` }), 200);
  const { json: listed } = await rest.get<{ nodes: readonly Made[] }>(`${path}/nodes`);
  const operationId = (await services.operations(serviceId))[0]?.id ?? "";
  const { id: appId } = await make("/app-services", { name: text });
  const descriptor = { name: text, resources: [] };
  const deployed = (await rest.post<Record<string, string>>("/projects/deploy", { descriptor })).json;
  const project = {
    projectId: deployed["project_id"] ?? "",
    projectName: text,
    deploymentId: deployed["deployment_id"] ?? "",
  };
  const inService = { serviceId, backupId, ruleId, operationId };
  const beside = { appId, channelId, exportId, inferenceKeyId, keyId, tokenId, webhookId };
  const existing: Existing = {
    ...inService,
    ...beside,
    ...project,
    organizationId,
    machineId: listed.nodes[0]?.id ?? "",
    controllerId: "c",
  };
  const lists = ["/events", "/audit-log", "/api-keys", "/webhooks", `${path}/operations`];
  const pages = lists.map((list) => rest.get<{ next_cursor: string | null }>(`${list}?limit=1`));
  const cursors = (await Promise.all(pages)).flatMap(({ json }) => json.next_cursor ?? []);
  return { existing, text, cursors };
}
