import type { ScriptAssessment, UnsupportedFeature, UnsupportedFeatures } from "@holdfast/sdk/responses.ts";
import { useState } from "preact/hooks";
import { numberText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Age, Badge, Card } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { useForm } from "../parts/use-form.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";
import { assessmentTitle, findingsByWeight, verdictTone } from "./assessment-view.ts";

/** An assessment of a script before it is moved, and the unsupported features that clients used. */
export function CompatibilityTab({ service: { id } }: TabProps) {
  const [assessment, setAssessment] = useState<ScriptAssessment>();
  return (
    <>
      <Used serviceId={id} />
      <Assess serviceId={id} onResult={setAssessment} />
      {assessment && <Result assessment={assessment} />}
    </>
  );
}

function Used({ serviceId }: { readonly serviceId: string }) {
  const refusal = refusalOf("services:data");
  const live = useLive<UnsupportedFeatures | undefined>(
    `unsupported ${serviceId}`,
    async (signal) =>
      refusal === undefined ? account.value.client.queries.unsupported(serviceId, { signal }) : undefined,
    { service: serviceId, pollIntervalMs: 10_000 },
  );
  if (refusal !== undefined) return <Notice tone="warn">{refusal}</Notice>;
  return (
    <LiveTable<UnsupportedFeature>
      title="Unsupported features that clients used"
      live={{ ...live, data: live.data?.features }}
      keyOf={({ feature }) => feature}
      icon="check"
      empty="Clients used none"
      actions={
        live.data && (
          <span class="quiet small">
            since <Age time={live.data.since} />
          </span>
        )
      }
      columns={[
        ["Feature", ({ feature }) => <b>{feature}</b>],
        ["Errors", ({ count }) => <span class="number">{numberText(count)}</span>],
        ["Instead", ({ advice }) => <span class="quiet">{advice}</span>],
      ]}
    >
      <p class="quiet">A statement that is refused because of its feature is counted here, with its replacement.</p>
    </LiveTable>
  );
}

interface AssessProps {
  readonly serviceId: string;
  readonly onResult: (assessment: ScriptAssessment) => void;
}

function Assess({ serviceId, onResult }: AssessProps) {
  const form = useForm({ sql: "" });
  const isEmpty = form.values.sql.trim() === "";
  return (
    <Card title="Assess a script">
      <FormBody
        form={form}
        action="Assess"
        kind="primary"
        refusal={refusalOf("services:data") ?? (isEmpty ? "Paste a script first." : undefined)}
        send={async ({ sql }) => onResult(await account.value.client.queries.assess(serviceId, sql))}
      >
        <TextField
          label="Script"
          help="Such as the exported schema of another server, with its lines GO, up to 256 KiB; nothing of it runs"
          lines
          {...form.field("sql")}
        />
      </FormBody>
    </Card>
  );
}

function Result({ assessment }: { readonly assessment: ScriptAssessment }) {
  const entries = findingsByWeight(assessment.findings).map((finding, index) => ({ ...finding, index }));
  return (
    <Card
      title={assessmentTitle(assessment)}
      flush
      actions={assessment.truncated && <span class="quiet small">the first findings alone</span>}
    >
      {entries.length === 0 ? (
        <Empty icon="check" title="The script uses no feature of the table" />
      ) : (
        <Table
          title="Findings"
          entries={entries}
          keyOf={({ index }) => String(index)}
          columns={[
            ["Line", ({ line }) => <span class="number">{line}</span>],
            ["Feature", ({ feature }) => <b>{feature}</b>],
            ["Verdict", (finding) => <Badge tone={verdictTone(finding)}>{finding.verdict}</Badge>],
            ["Advice", ({ advice }) => <span class="quiet">{advice}</span>],
          ]}
        />
      )}
    </Card>
  );
}
