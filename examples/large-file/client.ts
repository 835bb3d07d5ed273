import { createClient, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

const lines: string[] = [];
await using client = createClient({
  servers: { files: child(import.meta) },
  events: {
    // without a total there is no percentage: the absolute figure is all that can be shown
    onProgress: ({ progress, percent, message }, { server, tool }) => {
      const figure = percent === undefined ? String(progress) : `${percent.toFixed(1)} %`;
      lines.push(figure);
      console.log(`${server}/${tool} ${figure} ${message}`);
    },
  },
});

const result = await client.callTool("files", "process_large_file", { file_path: "/data/orders.csv" });
check("the answer", renderText(result.content), /orders\.csv/);
check("percentages with one decimal", lines.splice(0), ["12.5 %", "37.2 %", "72.8 %", "100.0 %"]);

await client.callTool("files", "process_stream", { file_path: "/data/orders.csv" });
check("absolute figures where no total is known", lines, ["125", "372", "728", "1000"]);
