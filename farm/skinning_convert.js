// SPDX-License-Identifier: GPL-3.0-or-later
// Convert many shots on Blender's own farm: a job type of Flamenco (3.5 or newer).
//
// Put this file into the folder `scripts` beside flamenco-manager, and choose "Skinning: Convert Shots" in the add-on.
// All workers must be able to reach the folders. More: docs/command_line.md.

const JOB_TYPE = {
    label: "Skinning: Convert Shots",
    description: "Turn mesh animations into bones, weights and keyframes, one task for each shot, and gather the reports into one table",
    settings: [
        { key: "shot_folder", type: "string", subtype: "dir_path", required: true, visible: "submission",
          eval: "str(Path(bpy.data.filepath).parent)",
          evalInfo: { description: "Folder of the open file" },
          description: "Folder of the shots' .blend files" },
        { key: "shots", type: "string", required: true,
          eval: "'|'.join(sorted(path.name for path in abspath(settings.shot_folder).glob('*.blend')))",
          evalInfo: { showLinkButton: true, description: "All files of the folder" },
          description: "Names of the files to convert, separated by |" },
        { key: "output_folder", type: "string", subtype: "dir_path", required: true,
          description: "Folder for results, reports, logs of failed shots, and table.csv. Not the folder of the shots" },
        { key: "on_failure", type: "string", choices: ["report", "fail"], default: "report",
          description: "report: a failed shot does not fail its task; the table lists it, and the last task fails. fail: its task fails, and Flamenco tries it again on other workers" },

        { key: "object", type: "string", required: true,
          eval: "C.object.name if C.object else ''",
          evalInfo: { description: "Active object" },
          description: "The mesh object that moves, in every shot, or a pattern such as Flag*" },
        { key: "bones", type: "int32", default: 20, propargs: { min: 1 }, description: "Number of bones" },
        { key: "kind", type: "string", choices: ["AFFINE", "SCALED", "RIGID"], default: "AFFINE",
          description: "What the bones may do" },
        { key: "influences", type: "int32", default: 4, propargs: { min: 1 },
          description: "Most bones that may move one vertex" },
        { key: "iterations", type: "int32", default: 15, propargs: { min: 1 }, description: "Rounds of improvement" },
        { key: "more_settings", type: "string", default: "",
          description: "More options of convert as on the command line, such as --residual-shapes 4 --smoothness 0.2" },
    ],
};

function compileJob(job) {
    const settings = job.settings;
    const names = shotNames(settings.shots);
    const shots = names.map((name) => path.join(settings.shot_folder, name));

    const gather = author.Task("gather reports", "blender");
    shots.forEach((shot, index) => {
        const task = author.Task(`convert ${path.stem(names[index])}`, "blender");
        task.addCommand(skinning("convert-shots", convertArguments(settings, shot)));
        job.addTask(task);
        gather.addDependency(task);
    });

    gather.addCommand(skinning("gather-reports", [
        settings.output_folder,
        ...shots.flatMap((shot) => ["--shots", shot]),
        "--output", path.join(settings.output_folder, "table.csv"),
    ]));
    job.addTask(gather);
}

// The names without empty and repeated ones: two tasks must not write the same file.
function shotNames(text) {
    const names = text.split("|").map((name) => name.trim()).filter((name) => name !== "");
    if (names.length === 0) {
        throw "There are no shots: the setting \"shots\" is empty";
    }
    return [...new Set(names)];
}

// Each path is a separate argument: Flamenco replaces its beginning on workers that have the folders elsewhere.
function convertArguments(settings, shot) {
    return [
        shot,
        "--output", settings.output_folder,
        `--on-failure=${settings.on_failure}`,
        `--object=${settings.object}`,
        `--bones=${settings.bones}`,
        `--kind=${settings.kind}`,
        `--influences=${settings.influences}`,
        `--iterations=${settings.iterations}`,
        `--settings=${settings.more_settings || ""}`,
    ];
}

// The shots come after --command: before it, a file that Blender cannot read would end Blender without a report.
function skinning(command, commandArguments) {
    return author.Command("blender-render", {
        exe: "{blender}",
        exeArgs: "{blenderArgs}",
        argsBefore: [],
        blendfile: "",
        args: ["--command", "skinning", command, ...commandArguments],
    });
}
