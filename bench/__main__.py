"""Runs every benchmark, prints its table, and writes its figures and page to docs/results."""

from bench import cohort_scale, engine_speed, explorer_load, meds_scale, prediction_speed, simulator_scale

if __name__ == "__main__":
    cohort_scale.main()
    meds_scale.main()
    simulator_scale.main()
    engine_speed.main([])
    prediction_speed.main()
    explorer_load.main()
