import { useEffect, useRef, useState } from "preact/hooks";
import type { Configuration } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Button } from "../parts/button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Badge, Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { chooseQuery, currentAddress, setQuery } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { type Choice, namesForRestart, type Parameter, parametersOf } from "./configuration-view.ts";
import type { TabProps } from "./tab-props.ts";

const choices: readonly (readonly [Choice, string])[] = [
  ["all", "All"],
  ["changed", "Changed"],
  ["waiting", "Not applied"],
];

/** The parameters of the engine: what is set, what waits for a restart, and a form for one of them. */
export function ConfigurationTab({ service, reload }: TabProps) {
  const { query } = currentAddress.value;
  const [name, setName] = useState<string>();
  /** The button that opened the form, which has the focus again afterwards. */
  const opener = useRef<Element | null>(null);
  const [choice] = choices.find(([each]) => each === query.get("parameters")) ?? ["all" as const];
  const contains = query.get("contains") ?? "";
  const live = useLive<Configuration>(
    `configuration ${service.id}`,
    (signal) => account.value.client.configuration.get(service.id, { signal }),
    { service: service.id, pollIntervalMs: (data) => (data?.operation ? 1_000 : 15_000) },
  );
  const refusal = refusalOf("services:write");
  const waiting = live.data === undefined ? [] : namesForRestart(live.data);
  const all = live.data === undefined ? [] : parametersOf(live.data, "all", "");
  const parameter = all.find((each) => each.name === name);
  const rows = live.data === undefined ? undefined : parametersOf(live.data, choice, contains);
  return (
    <>
      {waiting.length > 0 && (
        <Notice tone="warn">
          <p>A restart of the engine applies {waiting.join(", ")}.</p>
          <ActionButton
            refusal={refusal}
            run={() => account.value.client.services.command(service.id, "restart").then(reload)}
          >
            Restart
          </ActionButton>
        </Notice>
      )}
      {parameter !== undefined && (
        <ChangeForm
          key={parameter.name}
          serviceId={service.id}
          parameter={parameter}
          close={(isChanged) => {
            setName(undefined);
            if (opener.current instanceof HTMLElement) opener.current.focus();
            if (isChanged) live.reload();
          }}
        />
      )}
      <div class="halves">
        <TextField
          label="Parameters whose name contains"
          type="search"
          value={contains}
          onInput={(text) => setQuery({ contains: text })}
        />
        <SelectField
          label="Which"
          value={choice}
          options={choices}
          onInput={(which) => chooseQuery({ parameters: which })}
        />
      </div>
      <LiveTable
        title="Parameters"
        live={{ ...live, data: rows }}
        keyOf={(each) => each.name}
        icon="list"
        empty="No parameter matches"
        columns={[
          ["Name", (each) => <b class="mono small">{each.name}</b>],
          ["Value", (each) => <span class="mono small">{each.value}</span>],
          ["Default", (each) => <span class="mono small quiet">{each.default}</span>],
          [
            "State",
            (each) => (
              <>
                <Badge tone={toneOf(each.status)}>{labelOf(each.status)}</Badge>
                {each.reason !== null && <p class="small quiet">{each.reason}</p>}
                {each.warning !== null && <p class="small quiet">{each.warning}</p>}
              </>
            ),
          ],
          [
            "",
            (each) => (
              <Button
                refusal={refusal}
                onClick={() => {
                  opener.current = document.activeElement;
                  setName(each.name);
                }}
              >
                Change<span class="visually-hidden"> {each.name}</span>
              </Button>
            ),
          ],
        ]}
      />
    </>
  );
}

interface ChangeProps {
  readonly serviceId: string;
  readonly parameter: Parameter;
  readonly close: (isChanged: boolean) => void;
}

function ChangeForm({ serviceId, parameter: { name, value, default: usual }, close }: ChangeProps) {
  const form = useForm({ value });
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => host.current?.querySelector("input")?.focus(), []);
  const { configuration } = account.value.client;
  const send = async (change: string | null) => {
    const { parameters } = await configuration.update(serviceId, { [name]: change });
    const state = new Map(Object.entries(parameters)).get(name);
    showToast(state?.status === "rejected" ? "bad" : "good", `${name} is ${state?.value ?? usual}`);
    close(true);
  };
  return (
    <Card title={`Change ${name}`}>
      <FormBody form={form} action="Save" kind="primary" send={(input) => send(input.value)}>
        <div ref={host}>
          <TextField
            label={`Value of ${name}`}
            help={`Default: ${usual}`}
            {...form.field("value")}
            // The value can also be refused because of another parameter, whose fault has its name.
            fault={form.fault(`parameters.${name}`) ?? form.fault("parameters")}
          />
        </div>
        <div class="row">
          <ActionButton run={() => send(null)}>Use the default</ActionButton>
          <Button onClick={() => close(false)}>Cancel</Button>
        </div>
      </FormBody>
    </Card>
  );
}
