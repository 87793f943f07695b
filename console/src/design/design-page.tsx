import { ActionButton } from "../parts/action-button.tsx";
import { Button } from "../parts/button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { CheckField, ChoiceField, SelectField, TextField } from "../parts/field.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Badge, Card, Copyable, Facts, Loading, PageHead, Progress, Secret } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { useState } from "preact/hooks";

const colors = ["canvas", "surface", "surface-2", "surface-3", "accent-fill", "accent-soft", "good", "warn", "bad"];

/** The design system on one page: each part in each of its states. */
export function DesignPage() {
  const [text, setText] = useState("orders");
  const [choice, setChoice] = useState("small");
  const [isOn, setOn] = useState(true);
  return (
    <>
      <PageHead title="Design system" about="Each part of the console in each of its states" />
      <Card title="Colors">
        <div class="swatches">
          {colors.map((name) => (
            <div class="swatch" key={name}>
              <svg aria-hidden="true">
                <rect width="100%" height="100%" fill={`var(--${name})`} />
              </svg>
              <div class="small mono">{name}</div>
            </div>
          ))}
        </div>
      </Card>
      <Card title="Type">
        <div class="stack" data-gap="s">
          <p class="price">Title, 24 px</p>
          <p class="figure">Figure, 20 px</p>
          <h2>Heading, 16 px</h2>
          <p>
            Text, 14 px, with a <a href="#content">link</a> and <code>code</code>
          </p>
          <p class="quiet small">Help, 13 px</p>
        </div>
      </Card>
      <Card title="Buttons">
        <div class="row">
          <Button kind="primary" icon="plus">
            Primary
          </Button>
          <Button>Normal</Button>
          <Button kind="danger">Danger</Button>
          <Button kind="plain" icon="copy">
            Plain
          </Button>
          <Button kind="primary" busy>
            Busy
          </Button>
          <Button refusal="Your role lacks the scope services:write.">Refused</Button>
        </div>
      </Card>
      <Card title="Tabs and actions">
        <div class="stack">
          <Tabs
            label="Example of tabs"
            path={["design"]}
            current="first"
            tabs={[
              { name: "first", title: "First" },
              { name: "second", title: "Second" },
            ]}
          />
          <div class="row">
            <ActionButton run={() => Promise.resolve()} done="The change is made">
              Change
            </ActionButton>
            <ActionButton run={() => Promise.reject(new Error("The change failed."))}>Failing change</ActionButton>
          </div>
          <Table
            title="Example of a table"
            entries={["orders", "billing"]}
            keyOf={(name) => name}
            columns={[
              ["Name", (name) => <b>{name}</b>],
              ["", () => <Button kind="plain">Open</Button>],
            ]}
          />
        </div>
      </Card>
      <DeletionCard kind="example" name="orders" refusal={undefined} destroy={() => Promise.resolve()}>
        <p>What is lost, and how to undo it.</p>
      </DeletionCard>
      <Card title="Fields">
        <div class="halves">
          <TextField label="Text" help="Letters and digits" value={text} onInput={setText} />
          <TextField label="With a fault" fault="Is in use." value={text} onInput={setText} />
          <SelectField
            label="Choice of a list"
            value={choice}
            options={[
              ["small", "Small"],
              ["large", "Large"],
            ]}
            onInput={setChoice}
          />
          <CheckField label="A choice of yes or no" checked={isOn} onInput={setOn} />
          <ChoiceField
            label="A few choices"
            name="plan"
            value={choice}
            onInput={setChoice}
            choices={[
              { value: "small", title: "Small", detail: "1 vCPU, 2 GB" },
              { value: "large", title: "Large", detail: "4 vCPU, 8 GB" },
              { value: "huge", title: "Huge", refusal: "No host has capacity for it." },
            ]}
          />
        </div>
      </Card>
      <Card title="States">
        <div class="stack">
          <div class="row">
            <Badge tone="good">Running</Badge>
            <Badge tone="busy">Provisioning</Badge>
            <Badge tone="warn">degraded</Badge>
            <Badge tone="bad">Error</Badge>
            <Badge tone="none">Stopped</Badge>
            <span class="tag">tag</span>
          </div>
          <Progress percent={40} label="Progress" />
          <Notice>Something to know.</Notice>
          <Notice tone="good">Something went well.</Notice>
          <Notice tone="warn">Something to look at.</Notice>
          <div class="notice" data-tone="bad">
            Something failed.
          </div>
        </div>
      </Card>
      <Card title="Values">
        <div class="stack">
          <Facts
            facts={[
              ["Engine", "PostgreSQL 17"],
              ["Storage", "20 GB"],
            ]}
          />
          <Copyable text="postgres://app@orders.example:5432/orders" label="the address" />
          <Secret load={() => Promise.resolve("not a secret")} label="the example" />
        </div>
      </Card>
      <Card title="Loading">
        <Loading />
      </Card>
      <Card title="Empty">
        <Empty icon="database" title="Create your first database">
          <p class="quiet">Choose an engine, a plan and a size.</p>
          <Button kind="primary">Create service</Button>
        </Empty>
      </Card>
    </>
  );
}
