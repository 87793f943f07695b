import type { InferenceUsage } from "@holdfast/sdk/responses.ts";
import { numberText } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { SelectField } from "../parts/field.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Card, Loading } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { currentAddress, setQuery } from "../router/location.ts";
import { account } from "../session/account.ts";
import { centsText } from "./inference-view.ts";

/** The usage of the month by model or by key. */
export function Usage({ organization }: { readonly organization: string }) {
  const groupBy = currentAddress.value.query.get("group") === "key" ? "key" : "model";
  const { data, error, reload } = useLive<InferenceUsage>(
    `usage ${organization} ${groupBy}`,
    (signal) => account.value.client.inference.usage(organization, { group_by: groupBy }, { signal }),
    { pollIntervalMs: 15_000 },
  );
  return (
    <>
      <SelectField
        label="Usage of this month by"
        value={groupBy}
        options={[
          ["model", "Model"],
          ["key", "Key"],
        ]}
        onInput={(value) => setQuery({ group: value })}
      />
      <Card title="Usage" flush>
        {data === undefined ? (
          <div class="body">{error === undefined ? <Loading /> : <ErrorNotice error={error} onRetry={reload} />}</div>
        ) : data.items.length === 0 ? (
          <Empty icon="spark" title="No calls this month" />
        ) : (
          <Table
            title="Usage"
            entries={data.items}
            keyOf={({ model, key_id: key }) => `${model} ${key}`}
            columns={[
              [groupBy === "key" ? "Key" : "Model", ({ model, name, key_id: key }) => <b>{model ?? name ?? key}</b>],
              ["Requests", ({ requests }) => <span class="number">{numberText(requests)}</span>],
              ["Tokens in", ({ prompt_tokens: tokens }) => <span class="number">{numberText(tokens)}</span>],
              ["Tokens out", ({ completion_tokens: tokens }) => <span class="number">{numberText(tokens)}</span>],
              ["Cost", ({ cost_cents: cents }) => <span class="number">{centsText(cents, data.currency)}</span>],
            ]}
          />
        )}
      </Card>
    </>
  );
}
