import { createExisting } from "@holdfast/testing/contract/authorization-cases.ts";
import type { Existing } from "@holdfast/testing/contract/contract.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";

/** An organization with one object of each kind that its users can create. */
export interface Marked {
  readonly existing: Existing;
  /** Contained in every name and text of its objects, and nowhere else. */
  readonly text: string;
  /** Cursors of lists of its objects, which continue after them. */
  readonly cursors: readonly string[];
}

/** Fills the organization of the platform's owner. */
export async function markEverything({ rest, ...platform }: Platform, organizationId: string): Promise<Marked> {
  const text = "zq7mark";
  const services = createServices({ rest, ...platform });
  const { service } = await services.createRunning(text, { tags: { [text]: text } });
  const path = `/managed-services/${service.id}`;
  const { json: listed } = await rest.get<{ nodes: readonly { readonly id: string }[] }>(`${path}/nodes`);
  const operationId = (await services.operations(service.id))[0]?.id ?? "";
  expectStatus(await rest.patch(`/organizations/${organizationId}`, { name: `${text} ltd` }), 200);
  const base = { serviceId: service.id, operationId, machineId: listed.nodes[0]?.id ?? "", controllerId: "c" };
  const existing = await createExisting(rest, text, { ...base, organizationId }, { includesMarked: true });
  const lists = ["/events", "/audit-log", "/api-keys", "/webhooks", `${path}/operations`];
  const pages = lists.map((list) => rest.get<{ next_cursor: string | null }>(`${list}?limit=1`));
  const cursors = (await Promise.all(pages)).flatMap(({ json }) => json.next_cursor ?? []);
  return { existing, text, cursors };
}
