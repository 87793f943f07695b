import type { ServiceNode } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { Badge, Card } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { isOpen, monthlyCost } from "./service-view.ts";
import type { TabProps } from "./tab-props.ts";
import { useCatalog } from "./use-catalog.ts";

/** The nodes of a service: one can be added, and a replica can become the primary or be removed. */
export function NodesCard({ service, reload }: TabProps) {
  const catalog = useCatalog();
  const { nodes } = account.value.client;
  const refusal =
    refusalOf("services:write") ?? (isOpen(service.operation) ? "Another operation is in progress." : undefined);
  const { plan_name, storage_size_gb, storage_tier } = service;
  const cost = catalog && monthlyCost(catalog, { plan_name, storage_size_gb, storage_tier, nodes: 1 });
  return (
    <Card
      title="Nodes"
      flush
      actions={
        <div class="row">
          {catalog !== undefined && cost !== undefined && (
            <span class="quiet small">{priceText(cost, catalog.currency)} a month each</span>
          )}
          <ActionButton
            icon="plus"
            refusal={refusal}
            run={() => nodes.add(service.id, { role: "replica" }).then(reload)}
          >
            Add a node
          </ActionButton>
        </div>
      }
    >
      <Table
        title="Nodes"
        entries={service.nodes}
        keyOf={({ id }) => id}
        columns={[
          ["Role", ({ role }) => role],
          ["Status", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Zone", ({ zone }) => zone],
          ["Host name", ({ hostname }) => <span class="mono small">{hostname}</span>],
          ["", (node) => node.role === "replica" && <ReplicaActions {...{ service, reload, node, refusal }} />],
        ]}
      />
    </Card>
  );
}

interface ReplicaProps extends TabProps {
  readonly node: ServiceNode;
  readonly refusal: string | undefined;
}

function ReplicaActions({ service, reload, node, refusal }: ReplicaProps) {
  const { nodes } = account.value.client;
  const [name = node.hostname] = node.hostname.split(".");
  return (
    <>
      {/* Nodes that elect their leader choose it by themselves. */}
      {service.primary_node_id !== null && (
        <ActionButton refusal={refusal} run={() => nodes.failover(service.id, node.id).then(reload)}>
          Make primary
        </ActionButton>
      )}
      <DestroyButton
        text="Remove"
        refusal={refusal}
        title="Remove the node"
        name={name}
        action="Remove node"
        destroy={() => nodes.remove(service.id, node.id).then(reload)}
      >
        <p>Its machine and its copy of the data are deleted. The other nodes are unaffected.</p>
      </DestroyButton>
    </>
  );
}
