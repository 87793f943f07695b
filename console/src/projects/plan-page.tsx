import { useState } from "preact/hooks";
import type { PlanEntry, ProjectPlan } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Badge, Card, PageHead } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { actionTone, costChangeText, descriptorOf, diffLines, firstDescriptor, hasChanges } from "./plan-view.ts";

interface Planned {
  readonly plan: ProjectPlan;
  /** The descriptor's text, which may have changed since. */
  readonly text: string;
}

/** A descriptor, the changes of its deployment with their cost, and the button that deploys it. */
export function PlanPage() {
  const form = useForm({ text: firstDescriptor }, { draft: "project", retainsDraft: true });
  const [planned, setPlanned] = useState<Planned | undefined>();
  const { fault } = descriptorOf(form.values.text);
  const isCurrent = planned?.text === form.values.text;
  return (
    <>
      <PageHead
        title="Plan a project"
        crumbs={<a href={hrefOf("projects")}>Projects</a>}
        about="A plan changes nothing. The name decides whether a project is created or changed."
      />
      <Card title="Descriptor">
        <FormBody
          form={form}
          action="Show the plan"
          kind={isCurrent ? "normal" : "primary"}
          refusal={refusalOf("projects:read") ?? fault}
          send={async ({ text }) => {
            const { descriptor = {} } = descriptorOf(text);
            setPlanned({ plan: await account.value.client.projects.plan(descriptor), text });
          }}
        >
          <TextField
            label="Resources"
            help="JSON; the command line also reads YAML"
            lines
            value={form.values.text}
            onInput={(text) => form.set("text", text)}
            fault={fault ?? form.fault("descriptor")}
          />
        </FormBody>
      </Card>
      {planned && isCurrent && <Plan planned={planned} />}
    </>
  );
}

function Plan({ planned: { plan, text } }: { readonly planned: Planned }) {
  const deploy = useAction();
  const { descriptor = {} } = descriptorOf(text);
  const start = () =>
    deploy.run(async () => {
      const { name } = await account.value.client.projects.deploy(descriptor, { planDigest: plan.plan_digest });
      sessionStorage.removeItem("draft project");
      openPage(hrefOf("projects", name));
    });
  return (
    <>
      <PlanTable plan={plan.plan} currency={plan.currency} />
      <Card title="Deploy">
        <div class="stack">
          {plan.warnings.map((warning) => (
            <Notice key={warning} tone="warn">
              {warning}
            </Notice>
          ))}
          <p class="price">{costChangeText(plan)}</p>
          <ErrorNotice error={deploy.error} />
          <div class="row">
            <Button
              kind="primary"
              busy={deploy.isBusy}
              refusal={refusalOf("projects:write") ?? (hasChanges(plan) ? undefined : "The plan has no changes.")}
              onClick={start}
            >
              Deploy at this cost
            </Button>
          </div>
        </div>
      </Card>
    </>
  );
}

interface PlanTableProps {
  readonly plan: readonly PlanEntry[];
  readonly currency: string | undefined;
}

/** The changes of a plan, one resource a row. */
export function PlanTable({ plan, currency }: PlanTableProps) {
  return (
    <Card title="Plan" flush>
      <Table
        title="Plan"
        entries={plan}
        keyOf={({ logical_name: name }) => name}
        columns={[
          ["Resource", ({ logical_name: name }) => <b>{name}</b>],
          ["Kind", ({ kind }) => kind],
          ["Action", (entry) => <Badge tone={actionTone(entry)}>{entry.action}</Badge>],
          ["Changes", (entry) => <Changes entry={entry} />],
          [
            "Cost a month",
            ({ monthly_cost: cost }) => (
              <span class="number">{currency === undefined ? cost : priceText(cost, currency)}</span>
            ),
          ],
        ]}
      />
    </Card>
  );
}

function Changes({ entry: { changes, pending_changes: pending, reason, drift } }: { readonly entry: PlanEntry }) {
  return (
    <div class="stack" data-gap="s">
      {reason !== null && <span>{reason}</span>}
      <Diff changes={changes} />
      {pending.length > 0 && (
        <>
          <span class="quiet small">Recorded, not applied:</span>
          <Diff changes={pending} />
        </>
      )}
      {drift.length > 0 && <span class="quiet small">Differs: {drift.join(", ")}</span>}
    </div>
  );
}

export function Diff({ changes }: { readonly changes: PlanEntry["changes"] }) {
  const lines = diffLines(changes);
  if (lines.length === 0) return null;
  return (
    <div class="diff">
      {lines.map(({ sign, text }) => (
        <code key={`${sign}${text}`} data-sign={sign}>
          {sign} {text}
        </code>
      ))}
    </div>
  );
}
