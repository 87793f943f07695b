import { useEffect, useState } from "preact/hooks";
import { ValidationFailed } from "@holdfast/sdk/errors.ts";
import { memberOf } from "../member-of.ts";
import { Button } from "../parts/button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { faultOf } from "../parts/form-values.ts";
import { Empty, ErrorNotice, Notice } from "../parts/notice.tsx";
import { DestroyDialog } from "../parts/destroy-button.tsx";
import { Card, Copyable, Loading, PageHead } from "../parts/parts.tsx";
import { SubmitForm } from "../parts/submit-form.tsx";
import { Table } from "../parts/table.tsx";
import { useAction } from "../parts/use-action.ts";
import { hrefOf, currentAddress } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { MissingPage } from "../shell/missing-page.tsx";
import {
  curlOf,
  entryLabel,
  type GenericField,
  type GenericInput,
  type GenericOperation,
  isRecord,
  keyOf,
  operationsOn,
  requestOf,
  tableOf,
} from "./generic-view.ts";
import { Verb } from "./resources-page.tsx";
import { useOperations } from "./use-document.ts";

/** The form of one operation, and its response. Variables of the path come from the address. */
export function OperationPage({ id }: { readonly id: string }) {
  const { operations, error } = useOperations();
  const operation = operations?.find((each) => each.id === id);
  const crumbs = <a href={hrefOf("resources")}>All resources</a>;
  if (operations === undefined)
    return (
      <>
        <PageHead title="Resource" crumbs={crumbs} />
        <ErrorNotice error={error} />
        <Loading rows={6} />
      </>
    );
  if (operation === undefined) return <MissingPage />;
  return (
    <>
      <PageHead title={operation.title} crumbs={crumbs} beside={<Verb operation={operation} />} />
      <OperationForm
        key={`${id} ${currentAddress.value.query.toString()}`}
        operation={operation}
        operations={operations}
      />
    </>
  );
}

interface OperationFormProps {
  readonly operation: GenericOperation;
  readonly operations: readonly GenericOperation[];
}

function OperationForm({ operation, operations }: OperationFormProps) {
  const { me, transport } = account.value;
  const { query } = currentAddress.value;
  const initial = Object.fromEntries(
    operation.fields.flatMap((field) => {
      const preset = field.name === "org_id" ? me.organization_id : null;
      const text = query.get(field.name) ?? preset;
      return text === null ? [] : [[keyOf(field), text] as const];
    }),
  );
  const [input, setInput] = useState<GenericInput>(initial);
  const [faults, setFaults] = useState<Readonly<Record<string, string>>>({});
  const [response, setResponse] = useState<unknown>();
  const [isAsking, setAsking] = useState(false);
  const [idempotencyKey, setKey] = useState(() => crypto.randomUUID());
  const action = useAction();
  const isRead = operation.verb === "GET";
  const refusal = operation.scopes.map(refusalOf).find((reason) => reason !== undefined);
  const send = () => {
    const request = requestOf(operation, input);
    setFaults(request.faults);
    setAsking(false);
    if (Object.keys(request.faults).length > 0) return;
    action.run(async () => {
      const response = await transport.request<unknown>(operation.verb as "GET", request.path, {
        query: request.query,
        ...(request.body !== undefined && { body: request.body }),
        idempotencyKey,
      });
      setKey(crypto.randomUUID());
      setResponse(response ?? null);
    });
  };
  const isReady =
    isRead &&
    refusal === undefined &&
    operation.fields.every(({ required, ...field }) => !required || memberOf(input, keyOf(field)));
  useEffect(() => {
    if (isReady) send();
  }, []);
  const refused = action.error instanceof ValidationFailed ? action.error.fields : [];
  const isDestroying = operation.verb === "DELETE";
  return (
    <>
      <Card title={isRead ? "Request" : "Change"}>
        <SubmitForm class="stack" refusal={refusal} onSubmit={() => (isDestroying ? setAsking(true) : send())}>
          <p class="quiet">{operation.about}</p>
          <div class="halves">
            {operation.fields.map((field) => (
              <FieldInput
                key={keyOf(field)}
                field={field}
                value={memberOf(input, keyOf(field)) ?? ""}
                onInput={(value) => setInput({ ...input, [keyOf(field)]: value })}
                fault={memberOf(faults, keyOf(field)) ?? faultOf(refused, field.name)}
              />
            ))}
          </div>
          <ErrorNotice error={action.error} />
          <div class="row">
            <Button kind={isDestroying ? "danger" : "primary"} type="submit" busy={action.isBusy} refusal={refusal}>
              {isRead ? "Load" : "Send"}
            </Button>
          </div>
          <details>
            <summary>The same from a terminal</summary>
            <Copyable
              text={curlOf(operation, requestOf(operation, input), globalThis.location.origin)}
              label="the command"
            />
          </details>
        </SubmitForm>
      </Card>
      {isAsking && (
        <DestroyDialog
          title={operation.title}
          name="delete"
          action="Delete"
          work={action}
          onConfirm={send}
          onClose={() => setAsking(false)}
        >
          <p>{operation.about}</p>
        </DestroyDialog>
      )}
      {response !== undefined && <Response operation={operation} operations={operations} response={response} />}
    </>
  );
}

interface FieldInputProps {
  readonly field: GenericField;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly fault: string | undefined;
}

function FieldInput({ field, value, onInput, fault }: FieldInputProps) {
  const { label, help, kind, options, required } = field;
  const title = required ? `${label} (required)` : label;
  if (kind === "choice" || kind === "boolean") {
    const values = kind === "boolean" ? ["true", "false"] : options;
    const choices = [["", "not set"], ...values.map((each) => [each, each])] as [string, string][];
    return <SelectField label={title} help={help} value={value} options={choices} onInput={onInput} fault={fault} />;
  }
  return (
    <TextField
      label={title}
      help={kind === "lines" ? `${help ?? ""} One per line.` : kind === "json" ? `${help ?? ""} JSON.` : help}
      lines={kind === "lines" || kind === "json"}
      type={kind === "secret" ? "password" : "text"}
      autocomplete="off"
      value={value}
      onInput={onInput}
      fault={fault}
    />
  );
}

function Response({ operation, operations, response }: OperationFormProps & { readonly response: unknown }) {
  if (response === null) return <Notice tone="good">The request succeeded.</Notice>;
  const { list } = operation;
  if (list === undefined)
    return (
      <Card title="Response">
        <Copyable
          text={
            isRecord(response) && typeof response["text"] === "string"
              ? response["text"]
              : JSON.stringify(response, null, 2)
          }
          label="the response"
        />
      </Card>
    );
  const { columns, rows, entries } = tableOf(list, response);
  if (rows.length === 0)
    return (
      <Card title="Response">
        <Empty icon="list" title="No entries yet" />
      </Card>
    );
  return (
    <Card title={`${rows.length} ${rows.length === 1 ? "entry" : "entries"}`} flush>
      <Table
        title="Entries"
        entries={rows.map((cells, index) => ({ cells, index }))}
        keyOf={({ index }) => String(index)}
        columns={[
          ...columns.map((column, at) => [column.replaceAll("_", " "), ({ cells }: Row) => cells[at]] as const),
          [
            "Operations",
            ({ index }) => (
              <EntryOperations
                all={operationsOn(operations, operation, entries[index] ?? {})}
                input={currentAddress.value.query}
              />
            ),
          ],
        ]}
      />
    </Card>
  );
}

interface Row {
  readonly cells: readonly string[];
  readonly index: number;
}

interface EntryOperationsProps {
  readonly all: ReturnType<typeof operationsOn>;
  /** Variables of the list itself. */
  readonly input: URLSearchParams;
}

/** A link to the page of an entry, and its other operations, which a click shows. */
function EntryOperations({ all, input }: EntryOperationsProps) {
  const link = ({ operation, variable, value }: EntryOperationsProps["all"][number]) => {
    const query = new URLSearchParams(input);
    query.set(variable, value);
    return (
      <a key={operation.id} href={`${hrefOf("resources", operation.id)}?${query.toString()}`}>
        {entryLabel(operation)}
      </a>
    );
  };
  const isMain = ({ operation }: EntryOperationsProps["all"][number]) => entryLabel(operation) === "Open";
  const others = all.filter((each) => !isMain(each));
  return (
    <div class="entry-operations">
      {all.filter(isMain).map(link)}
      {others.length > 0 && (
        <details>
          <summary>More</summary>
          <div class="stack" data-gap="s">
            {others.map(link)}
          </div>
        </details>
      )}
    </div>
  );
}
