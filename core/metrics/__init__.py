"""From observations of attempts to official numbers: contracts, reducers, intervals, aggregation, the report."""
