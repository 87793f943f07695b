import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { memberOf } from "../member-of.ts";
import { Empty, ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts, Loading, PageHead } from "../parts/parts.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { account, refusalOf } from "../session/account.ts";
import { type OperatorList, operatorTabs, operatorText, operatorTone, valueOf } from "./operator-view.ts";

type Entry = Readonly<Record<string, unknown>>;

const maxEntries = 200;

/** Hosts, machines and controllers of the installation, for platform operators to read. */
export function OperatorsPage({ tab = "hosts" }: { readonly tab: string | undefined }) {
  const refusal = refusalOf("platform:read");
  const current = operatorTabs.find(({ name }) => name === tab);
  return (
    <>
      <PageHead
        title="Installation"
        about={
          <>
            Hosts, machines and controllers, for operators to read; <code>holdfast admin</code> changes it
          </>
        }
      />
      {refusal !== undefined ? (
        <Notice tone="warn">{refusal}</Notice>
      ) : (
        <>
          <Tabs label="Parts of the installation" current={tab} path={["operators"]} tabs={operatorTabs} />
          <div class="stack" data-gap="l" key={tab}>
            {current === undefined ? (
              <Empty icon="search" title="There is no such part of the installation" />
            ) : (
              current.lists.map((list) => <List key={list.title} list={list} />)
            )}
            {tab === "agents" && <Rollout />}
            {tab === "hosts" && <Authority />}
          </div>
        </>
      )}
    </>
  );
}

function List({ list: { title, service, method, plural, columns, empty } }: { readonly list: OperatorList }) {
  const live = useLive<readonly Entry[]>(
    `admin ${method}`,
    async (signal) => {
      const { admin } = account.value.client;
      const request = { page: { limit: maxEntries } };
      const response = await admin<Record<string, readonly Entry[]>>(service, method, request, { signal });
      return memberOf(response, plural) ?? [];
    },
    { pollIntervalMs: 5_000 },
  );
  return (
    <LiveTable
      title={title}
      live={live}
      keyOf={(entry) => JSON.stringify(entry)}
      icon="list"
      empty={empty}
      columns={columns.map(
        ([name, member, kind]) =>
          [name, (entry: Entry) => <Cell value={valueOf(entry, member)} kind={kind} />] as const,
      )}
    />
  );
}

interface CellProps {
  readonly value: unknown;
  readonly kind: OperatorList["columns"][number][2];
}

function Cell({ value, kind }: CellProps) {
  if (kind === "time" && typeof value === "string") return <Age time={value} />;
  const text = operatorText(value, kind, Date.now());
  if (kind === "state" && text !== "") return <Badge tone={operatorTone(text)}>{text}</Badge>;
  return kind === "id" ? <span class="mono small">{text}</span> : <>{text}</>;
}

function Rollout() {
  const live = useLive<Entry>(
    "admin rollout",
    (signal) => account.value.client.admin<Entry>("AgentRolloutService", "GetAgentRollout", {}, { signal }),
    { pollIntervalMs: 5_000 },
  );
  const number = (name: string) => operatorText(valueOf(live.data ?? {}, name), undefined, 0) || "0";
  const text = (name: string) => operatorText(valueOf(live.data ?? {}, name), undefined, 0) || "none";
  return (
    <Card title="Rollout">
      {live.data === undefined ? (
        live.error === undefined ? (
          <Loading />
        ) : (
          <ErrorNotice error={live.error} onRetry={live.reload} />
        )
      ) : (
        <Facts
          facts={[
            ["Release", text("release")],
            ["State", text("state")],
            ["Reason", text("reason")],
            ["Current", number("current")],
            ["Behind", number("behind")],
            ["Upgrading", number("upgrading")],
            ["Failed", number("failed")],
            ["Unreachable", number("unreachable")],
          ]}
        />
      )}
    </Card>
  );
}

interface TrustedAuthority {
  readonly fingerprint: string;
  readonly notAfter: string;
  readonly signs?: boolean;
}

function Authority() {
  const live = useLive<readonly TrustedAuthority[]>("admin authority", async (signal) => {
    const { admin } = account.value.client;
    const { trusted } = await admin<{ trusted?: readonly TrustedAuthority[] }>(
      "AuthorityService",
      "GetAuthority",
      {},
      { signal },
    );
    return trusted ?? [];
  });
  return (
    <LiveTable
      title="Certificate authorities"
      live={live}
      keyOf={({ fingerprint }) => fingerprint}
      icon="shield"
      empty="No authority"
      columns={[
        ["Fingerprint", ({ fingerprint }) => <span class="mono small">{fingerprint}</span>],
        ["Signs", ({ signs = false }) => (signs ? "yes" : "no")],
        ["Expires", ({ notAfter: time }) => <Age time={time} />],
      ]}
    />
  );
}
