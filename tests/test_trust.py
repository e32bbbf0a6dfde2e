"""docs/trust.md says what is so: each sentence that a test can hold is named here with the test that holds it."""

import ast
import errno
import re
from functools import lru_cache
from pathlib import Path

import pytest

from autotune import UsageError
from autotune.cli import program
from autotune.records.damage import cannot_write

from .commands import ended

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"
HELD = {
    "entry points of installed packages": ("test_installed", "test_a_device_and_a_sampler_are_added"),
    "when a sweep names it": (
        "emit/test_records_are_data",
        "test_a_replay_does_not_import_what_a_record_names",
    ),
    "and the files that it includes": (
        "rendering/test_includes",
        "test_times_do_not_outlive_an_included_file_and_packages_have_it",
    ),
    "its expressions are integers, names": ("core/test_expressions", "test_a_campaigns_expression_is_bounded_too"),
    "The cost of each expression is bounded before it is computed": (
        "core/test_expressions",
        "test_what_is_too_large_whatever_the_parameters_is_refused_before_anything_runs",
    ),
    "Nothing in them is imported or run": (
        "emit/test_records_are_data",
        "test_a_record_does_not_choose_the_definition",
    ),
    "paths of definitions are printed but not followed": (
        "emit/test_records_are_data",
        "test_a_record_does_not_choose_the_definition",
    ),
    "names of samplers and kinds of devices are looked up": (
        "test_installed",
        "test_a_name_in_a_record_imports_nothing",
    ),
    "values of configs and problems are checked": (
        "emit/test_records_are_data",
        "test_values_of_a_problem_have_the_fields_types",
    ),
    "text is escaped before it goes into an emitted package": (
        "emit/test_records_are_data",
        "test_no_string_of_a_record_becomes_code",
    ),
    "no record writes outside the folders that were named": (
        "records/test_damaged",
        "test_a_string_field_of_a_problem_writes_inside_the_results",
    ),
    "HDF5 files with data in other files": ("engines/files/test_hdf5", "test_data_that_lie_elsewhere_are_refused"),
    "or behind links, are refused": ("engines/files/test_hdf5", "test_links_to_data_elsewhere_are_refused"),
    "they are opened as recordings and only read": (
        "engines/jobs/test_array_file",
        "test_files_that_it_names_are_recordings_or_refused",
    ),
    "Pipes, devices and sockets are refused at every option that takes a path": (
        "test_paths",
        "test_wrong_paths_and_somebodys_end_in_a_line",
    ),
    "and in records": (
        "records/test_damaged",
        "test_a_pipe_in_the_place_of_a_file_of_a_record_is_told_and_not_waited_for",
    ),
    "also when it is unpacked": ("test_paths", "test_wrong_paths_and_somebodys_end_in_a_line"),
    "No command replaces a file that it has not written": (
        "test_paths",
        "test_wrong_paths_and_somebodys_end_in_a_line",
    ),
    "`autotune sky` writes only into an empty folder": (
        "engines/sky/test_record",
        "test_nothing_is_written_over_and_a_full_disk_is_told",
    ),
    "refuses names of antennas that lead out of it": ("engines/sky/test_record", "test_names_that_are_no_files"),
    "which are removed if they stay empty": (
        "engines/jobs/test_ends",
        "test_delays_that_outrun_the_samples_are_told_and_asked_for_no_longer",
    ),
    "A damaged line or file is left out with one line": (
        "records/test_damaged",
        "test_many_damaged_lines_are_one_message",
    ),
    "detect a changed digit": ("records/test_damaged", "test_one_changed_character_of_what_we_wrote_is_found"),
    "Output of definitions and kernels goes to stderr": (
        "cli/test_cli_errors",
        "test_what_a_definition_prints_is_no_data",
    ),
    "only you and root may be able to write to it": (
        "core/test_kept",
        "test_a_folder_that_others_may_write_is_not_used",
    ),
    "each file has a digest": ("core/test_kept", "test_a_library_that_is_not_what_was_kept_is_compiled_again"),
    "a folder of another user is refused": ("porting/test_definition", "test_a_folder_of_another_user_is_refused"),
    "that differ from the calls are written again": (
        "porting/test_definition",
        "test_what_somebody_changed_is_written_anew",
    ),
    "links, pipes and files with other names are neither followed nor written": (
        "system/test_lock",
        "test_what_is_no_lock_is_neither_followed_nor_waited_for",
    ),
    "a holder's text is shown in one line, escaped": (
        "system/test_lock",
        "test_what_stands_in_it_is_told_in_one_harmless_line",
    ),
    "Whoever may write to its folder can hold it": (
        "test_kill",
        "test_the_second_sweep_on_a_device_waits_and_says_who_holds_it",
    ),
    "on 127.0.0.1 only, all of which require a certificate": (
        "campaign/test_campaign_security",
        "test_a_local_campaign_listens_on_loopback_and_speaks_to_no_stranger",
    ),
    "Certificates of another authority are refused in one line": (
        "campaign/test_campaign_security",
        "test_a_campaign_over_tls_and_a_client_without_a_certificate",
    ),
    "beyond loopback there is no authentication": (
        "campaign/test_campaign_security",
        "test_an_open_port_beyond_loopback_is_told",
    ),
    "listen at the addresses of `[from]` in their files, and nowhere else": (
        "engines/service/test_page",
        "test_an_engine_listens_where_its_file_says_and_nowhere_else",
    ),
    "signals of `dsim` are parsed and never run": (
        "engines/digitiser/test_signal_language",
        "test_any_text_is_a_signal_or_is_refused",
    ),
    "Tests compare the placing of random heaps with a model": ("engines/network/test_place", "test_long_streams"),
    "damaged packets and noise at a port affect only the heaps that they hit": (
        "engines/service/test_failures",
        "test_noise_at_the_port_is_counted_and_costs_nothing_else",
    ),
    "one trial with a status, a message, and the command that reproduces it": (
        "test_faults",
        "test_faults_have_their_statuses_and_the_sweep_finishes",
    ),
    "its process ends, and the caller's CUDA context and arrays stay whole": (
        "first_use/test_on_gpu",
        "test_faulty_candidates_leave_the_callers_context_and_arrays_whole",
    ),
    "one trial, `definition_failed`": ("trial/test_contract", "test_the_numbers_of_a_launch_are_whole"),
    "one line with file, line, method and what it must return": ("trial/test_contract", "test_work_is_finite"),
    "it is replaced, and its task is tried once more": (
        "system/test_processes",
        "test_what_was_in_flight_is_tried_once_more",
    ),
    "started again, it continues": (
        "test_kill",
        "test_killed_three_times_it_finishes_with_the_very_set_of_an_undisturbed_sweep",
    ),
    "files that compilers left in the temporary folder are removed": (
        "system/test_temporary",
        "test_a_killed_process_leaves_nothing_behind_the_next_start",
    ),
    "one line; the record so far stays": ("engines/files/test_hdf5", "test_a_full_disk_leaves_what_was_written"),
    "the trial is stale, and so is an outcome": (
        "validity/test_standing",
        "test_what_does_something_else_is_measured_again",
    ),
    "its trials do not count, and one line says how many": (
        "sweep/test_excluded",
        "test_a_config_that_is_excluded_by_now_is_not_the_winner",
    ),
    "a Ctrl-C is yours": ("trial/test_contract", "test_a_ctrl_c_while_a_definition_computes_is_the_users"),
}


@lru_cache(maxsize=64)
def functions_of(path: str) -> set[str]:
    tree = ast.parse((Path(__file__).parent / f"{path}.py").read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("sentence", HELD)
def test_what_the_page_says_is_held_by_a_test_that_is_there(sentence: str) -> None:
    page = " ".join(PAGE.read_text().split())
    path, name = HELD[sentence]
    assert sentence in page and name in functions_of(path)


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), 1),
        (OSError(errno.EACCES, "Permission denied"), 2),
        (None, 2),
    ],
)
def test_a_full_disk_is_no_wrong_usage(
    raised: OSError | None, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(**_: object) -> None:
        if raised is None:
            raise UsageError("no such thing")
        raise cannot_write(Path("x"), raised) from raised

    monkeypatch.setattr(program, "app", fails)
    found, told = ended(["sweep"], capsys, monkeypatch)
    assert found == code and len(told.strip().splitlines()) == 1
    assert re.search(
        r"1: a check failed, nothing was correct, or a disk is full or fails; 2: wrong usage", PAGE.read_text()
    )
