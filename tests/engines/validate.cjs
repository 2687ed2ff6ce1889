// SPDX-License-Identifier: GPL-3.0-or-later
// Khronos' validator: node validate.cjs FILE. Standard output: its messages as JSON.
const fs = require("node:fs");
const validator = require("gltf-validator");

validator
    .validateBytes(new Uint8Array(fs.readFileSync(process.argv[2])))
    .then((report) => process.stdout.write(JSON.stringify(report.issues.messages)));
