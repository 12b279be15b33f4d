// What Grafana 11.6 publishes as the form of a dashboard, its panels' options included.
// The test puts the dashboards behind this text and has tsc look.
import type { AnnotationQuery, Dashboard, Panel, RowPanel } from "@grafana/schema";
import type * as stat from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type * as table from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type * as timeline from "@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen";
import type * as timeseries from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// JSON holds the words of an enumeration, not its members.
type Plain<T> = T extends string
  ? `${T}`
  : T extends (infer Item)[]
    ? Plain<Item>[]
    : T extends object
      ? { [Key in keyof T]: Plain<T[Key]> }
      : T;

// The schema leaves each data source's own fields open; these are Prometheus's.
interface Target {
  refId: string;
  datasource: { type: "prometheus"; uid: string };
  editorMode: "code" | "builder";
  expr: string;
  legendFormat?: string;
  format?: "time_series" | "table" | "heatmap";
  instant: boolean;
  range: boolean;
}

type Defaults = NonNullable<Panel["fieldConfig"]>["defaults"];
type Drawn<Kind extends string, Options, Custom> = Plain<
  Omit<Panel, "type" | "options" | "targets" | "fieldConfig"> & {
    type: Kind;
    title: string;
    description: string;
    options: Options;
    targets: Target[];
    fieldConfig: {
      defaults: Omit<Defaults, "custom"> & { custom?: Custom };
      overrides: NonNullable<Panel["fieldConfig"]>["overrides"];
    };
  }
>;
type Known =
  | Drawn<"stat", stat.Options, never>
  | Drawn<"table", table.Options, Partial<table.FieldConfig>>
  | Drawn<"timeseries", timeseries.Options, timeseries.FieldConfig>
  | Drawn<"state-timeline", timeline.Options, timeline.FieldConfig>;
type Row = Plain<Omit<RowPanel, "panels">> & { panels: Known[] };
type Line = AnnotationQuery & {
  expr: string;
  step: string;
  titleFormat: string;
  textFormat: string;
};
type Checked = Plain<Omit<Dashboard, "panels" | "annotations">> & {
  panels: (Known | Row)[];
  annotations: { list: Line[] };
};

